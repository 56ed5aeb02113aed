package oplog

import (
	"bytes"
	"errors"
	"io"
)

// lineReader reads the lines of a part of a file.
type lineReader struct {
	file File
	// at is the offset of the line that comes next.
	at int64
	// buf holds what was read from at on; more follows from next to limit.
	buf         []byte
	space       []byte
	next, limit int64
}

const blockSize = 256 << 10

func newLineReader(file File, from, to int64) *lineReader {
	return &lineReader{file: file, at: from, next: from, limit: to, space: make([]byte, min(blockSize, to-from))}
}

// read returns the next line without its end. It is good until the next call.
// Where there is no whole line of at most maxLine any more, the error is [io.EOF].
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

// fill reads another block behind what is left of the one before.
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
