package store

import "example.com/go-webhookcfg/internal/oplog"

// OpenFS is OpenFile in another file system.
func OpenFS(fsys oplog.FS, name string, o *FileOptions) (*File, error) {
	if o == nil {
		o = new(FileOptions)
	}
	return openFile(fsys, name, o)
}
