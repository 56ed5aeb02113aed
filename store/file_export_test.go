package store

import "example.com/go-webhookcfg/internal/oplog"

// Unseen returns how many clients the feed remembers since its last read.
func (m *Memory) Unseen() int { return len(m.changes.unseen) }

// OpenFS is OpenFile in another file system.
func OpenFS(fsys oplog.FS, name string, o *FileOptions) (*File, error) {
	if o == nil {
		o = new(FileOptions)
	}
	return openFile(fsys, name, o)
}

// Err returns why changes are refused now, without the second that a result of Healthy lasts.
func (f *File) Err() error { return withOp("changes", f.log.Err()) }
