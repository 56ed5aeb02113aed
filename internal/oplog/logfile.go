package oplog

import (
	"bytes"
	"errors"
	"io"
)

// A write that would move the end of the file brings room with it for the writes to
// come: as many blank bytes again as the file has, within bounds.
const (
	minRoom = 4 << 10
	maxRoom = 256 << 10
)

var blanks = func() (b [maxRoom]byte) {
	for i := range b {
		b[i] = '\n'
	}
	return b
}()

// segment is the file of a log, open for appending.
type segment struct {
	file File
	// end is the offset behind the last record; from there to room all is blank.
	end, room int64
	// records counts the changes in the file.
	records int
	// proved says that the file itself tells that all before end was on disk.
	proved bool
}

// append makes lines, n records whose "synced" is end, the next durable group.
func (s *segment) append(lines []byte, n int) error {
	end := s.end + int64(len(lines))
	if end >= s.room {
		room := min(max(end, minRoom), maxRoom)
		if _, err := s.file.WriteAt(blanks[:room], end); err != nil {
			return err
		}
		s.room = end + room
	}
	if _, err := s.file.WriteAt(lines, s.end); err != nil {
		return err
	}
	if err := s.file.Sync(); err != nil {
		return err
	}
	s.end, s.records, s.proved = end, s.records+n, false
	return nil
}

// rewrite writes what is between from and end once more, in case the system took
// it for clean after a sync that failed.
func (s *segment) rewrite(from int64) error {
	if err := s.cutRoom(); err != nil {
		return err
	}
	block := make([]byte, min(blockSize, s.end-from))
	for from < s.end {
		part := block[:min(int64(len(block)), s.end-from)]
		if err := readFull(s.file, part, from); err != nil {
			return err
		}
		if _, err := s.file.WriteAt(part, from); err != nil {
			return err
		}
		from += int64(len(part))
	}
	return s.file.Sync()
}

// finish removes the room and proves what is before it by a mark.
func (s *segment) finish() error {
	if err := s.cutRoom(); err != nil {
		return err
	}
	if !s.proved {
		mark := appendMark(nil, s.end)
		if _, err := s.file.WriteAt(mark, s.end); err != nil {
			return err
		}
		s.end += int64(len(mark))
		s.room, s.proved = s.end, true
	}
	return s.file.Sync()
}

func (s *segment) cutRoom() error {
	if s.room <= s.end {
		return nil
	}
	s.room = s.end
	return s.file.Truncate(s.end)
}

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
