package oplog

import (
	"bytes"
	"errors"
	"io"
	"math"
)

// If a write would extend the file, the log preallocates space for later writes: as many
// blank bytes as the file already has, within these bounds.
const (
	minPreallocated = 4 << 10
	maxPreallocated = 256 << 10
)

var blanks = func() (b [maxPreallocated]byte) {
	for i := range b {
		b[i] = '\n'
	}
	return b
}()

// logFile is a log's file, open for appending.
type logFile struct {
	file File
	logHeader
	// end is the offset after the last record. From there to preallocated, all bytes are
	// blank. If you don't know how far that goes, set preallocated beyond any size, and trim
	// truncates everything.
	end, preallocated int64
	// checked is where the last record starts that is known to be in the file.
	checked int64
	// records counts the changes in the file.
	records int
	// isSuspect reports that a write, sync or check failed, so anything can follow end.
	isSuspect bool
}

var errOverwritten = errors.New("another program cut or overwrote the file while it was open")

// readBack reads the header, and the records from the last one that it has read before. It
// returns an error if they aren't as they were written. If another program cut or overwrote
// the file, it shows there even after later writes, which restore the size.
func (f *logFile) readBack() error {
	header := make([]byte, headerLen)
	err := readFull(f.file, header, 0)
	if err == nil && !bytes.Equal(header, f.lines[:]) {
		return errOverwritten
	}
	for lines := newLineReader(f.file, f.checked, f.end); err == nil && lines.at < f.end; {
		var line []byte
		start := lines.at
		if line, err = lines.read(); err == nil && !checksumHolds(line) {
			return errOverwritten
		}
		f.checked = start
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errOverwritten
	}
	return err
}

// append writes lines after the last record, and syncs them. Their "synced" must be end. If
// the file takes only some of the lines, the first written bytes are durable: they're the
// lines that it took completely. After any other error nothing is durable, and the file is
// suspect. append never changes end.
func (f *logFile) append(lines []byte) (written int, err error) {
	f.isSuspect = true
	written, err = f.file.WriteAt(lines, f.end)
	if err != nil {
		written = bytes.LastIndexByte(lines[:written], '\n') + 1
		if err := f.cut(f.end + int64(written)); err != nil {
			return 0, err
		}
	} else {
		// The lines come first, because blanks could take the space that they need. If
		// there's no room for blanks, a sync is slower but no less durable.
		_ = f.preallocate(f.end + int64(len(lines)))
	}
	if err := f.file.Sync(); err != nil {
		return 0, err
	}
	f.isSuspect = false
	return written, err
}

// preallocate writes blanks after the given end of the records, unless there already are
// some.
func (f *logFile) preallocate(end int64) error {
	if end < f.preallocated {
		return nil
	}
	n, err := f.file.WriteAt(blanks[:min(max(end, minPreallocated), maxPreallocated)], end)
	f.preallocated = end + int64(n)
	return err
}

// probe checks that the file can grow.
func (f *logFile) probe() error {
	if err := f.preallocate(f.end); err != nil {
		return errors.Join(err, f.cut(f.end))
	}
	f.isSuspect = true
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.isSuspect = false
	return nil
}

// cut removes everything from an offset on.
func (f *logFile) cut(end int64) error {
	f.preallocated = end
	return f.file.Truncate(end)
}

// restore removes anything that a failed write left after the records. All records are
// durable: after a failed sync, the system can only treat later writes as clean. But the last
// records share a block of the disk with these writes, so restore writes them once more.
func (f *logFile) restore() error {
	const block = 4 << 10
	f.preallocated = math.MaxInt64
	if err := f.rewriteTail(f.end / block * block); err != nil {
		return err
	}
	f.isSuspect = false
	return nil
}

// rewriteTail writes the bytes between from and end once more, and syncs them. After a failed
// sync, the system may otherwise treat them as clean.
func (f *logFile) rewriteTail(from int64) error {
	block := make([]byte, min(blockSize, f.end-from))
	for from < f.end {
		part := block[:min(int64(len(block)), f.end-from)]
		if err := readFull(f.file, part, from); err != nil {
			return err
		}
		if _, err := f.file.WriteAt(part, from); err != nil {
			return err
		}
		from += int64(len(part))
	}
	return f.trim()
}

// seal removes everything after the last record, even if another program appended it, and
// makes the header cover all records. They must be on disk already. If there's nothing to do,
// seal doesn't write. You can call it again after an error.
func (f *logFile) seal() (err error) {
	if f.preallocated, err = f.file.Size(); err != nil {
		return err
	}
	if f.synced == f.end {
		if f.preallocated <= f.end {
			return nil
		}
		return f.trim()
	}
	if err := f.writeSpare(f.end); err != nil {
		return err
	}
	if err := f.trim(); err != nil {
		return err
	}
	f.synced, f.spare = f.end, 1-f.spare
	return nil
}

// writeSpare writes the copy of the header whose turn it is.
func (f *logFile) writeSpare(synced int64) error {
	line := appendHeaderCopy(nil, version, synced)
	if _, err := f.file.WriteAt(line, f.spare*headerCopyLen); err != nil {
		return err
	}
	copy(f.lines[f.spare*headerCopyLen:], line)
	return nil
}

// upgrade makes a sealed log of an older version one of the present version. Don't append
// records that need this version before: as long as one copy of the header has the older
// version, a program that only knows that one opens the log.
func (f *logFile) upgrade() error {
	if !f.isOld {
		return nil
	}
	for range 2 { // each copy must be on disk before the other one is written
		if err := f.writeSpare(f.synced); err != nil {
			return err
		}
		if err := f.file.Sync(); err != nil {
			return err
		}
		f.spare = 1 - f.spare
	}
	f.isOld = false
	return nil
}

// trim removes everything after the last record, and syncs the file.
func (f *logFile) trim() error {
	if f.preallocated > f.end {
		if err := f.file.Truncate(f.end); err != nil {
			return err
		}
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.preallocated = f.end
	return nil
}

// lineReader reads the lines of part of a file.
type lineReader struct {
	file File
	// at is the offset of the next line.
	at int64
	// buf holds the bytes from at on that have been read. The bytes from next to limit
	// haven't been.
	buf         []byte
	space       []byte
	next, limit int64
}

const blockSize = 256 << 10

func newLineReader(file File, from, to int64) *lineReader {
	return &lineReader{file: file, at: from, next: from, limit: to, space: make([]byte, min(blockSize, to-from))}
}

// read returns the next line without its end. You can use it until the next call. If there is
// no complete line of at most maxLine bytes, the error is [io.EOF].
func (r *lineReader) read() ([]byte, error) {
	for {
		if end := bytes.IndexByte(r.buf, '\n'); end >= 0 {
			line := r.buf[:end]
			r.buf = r.buf[end+1:]
			r.at += int64(end) + 1
			return line, nil
		}
		if r.next == r.limit || len(r.buf) > maxLine {
			return nil, io.EOF
		}
		if err := r.fill(); err != nil {
			return nil, err
		}
	}
}

// fill reads another block, and puts it after the rest of the previous one.
func (r *lineReader) fill() error {
	if len(r.buf) > len(r.space)/2 {
		r.space = make([]byte, 2*len(r.space))
	}
	kept := copy(r.space, r.buf)
	n := int(min(int64(len(r.space)-kept), r.limit-r.next))
	if err := readFull(r.file, r.space[kept:kept+n], r.next); err != nil {
		return err
	}
	r.next += int64(n)
	r.buf = r.space[:kept+n]
	return nil
}

// readFull reads exactly len(b) bytes.
func readFull(file File, b []byte, offset int64) error {
	n, err := file.ReadAt(b, offset)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
