package oplog

import (
	"bytes"
	"errors"
	"io"
)

// A write that would extend the file preallocates space for later ones: as many blank
// bytes as the file already has, within these bounds.
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

// logFile is the file of a log, open for appending.
type logFile struct {
	file File
	// end is the offset after the last record; from there to preallocated all is blank.
	end, preallocated int64
	// records counts the changes in the file.
	records int
	// sealed reports that the file itself records that everything before end is on disk.
	sealed bool
}

// append makes lines, n records whose "synced" is end, the next durable batch.
func (f *logFile) append(lines []byte, n int) error {
	end := f.end + int64(len(lines))
	if end >= f.preallocated {
		preallocated := min(max(end, minPreallocated), maxPreallocated)
		if _, err := f.file.WriteAt(blanks[:preallocated], end); err != nil {
			return err
		}
		f.preallocated = end + preallocated
	}
	if _, err := f.file.WriteAt(lines, f.end); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	f.end, f.records, f.sealed = end, f.records+n, false
	return nil
}

// rewriteTail writes the bytes between from and end once more, in case the system treats
// them as clean after a failed sync.
func (f *logFile) rewriteTail(from int64) error {
	if err := f.trim(); err != nil {
		return err
	}
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
	return f.file.Sync()
}

// seal removes the preallocated space and seals the records with a checkpoint.
func (f *logFile) seal() error {
	if err := f.trim(); err != nil {
		return err
	}
	if !f.sealed {
		checkpoint := appendCheckpoint(nil, f.end)
		if _, err := f.file.WriteAt(checkpoint, f.end); err != nil {
			return err
		}
		f.end += int64(len(checkpoint))
		f.preallocated, f.sealed = f.end, true
	}
	return f.file.Sync()
}

// trim removes the preallocated space.
func (f *logFile) trim() error {
	if f.preallocated <= f.end {
		return nil
	}
	f.preallocated = f.end
	return f.file.Truncate(f.end)
}

// lineReader reads the lines of part of a file.
type lineReader struct {
	file File
	// at is the offset of the next line.
	at int64
	// buf holds the bytes read from at on; more follow from next to limit.
	buf         []byte
	space       []byte
	next, limit int64
}

const blockSize = 256 << 10

func newLineReader(file File, from, to int64) *lineReader {
	return &lineReader{file: file, at: from, next: from, limit: to, space: make([]byte, min(blockSize, to-from))}
}

// read returns the next line without its end, valid until the next call. If there is no
// complete line of at most maxLine, the error is [io.EOF].
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

// fill reads another block after the rest of the previous one.
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
