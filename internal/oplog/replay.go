package oplog

import (
	"errors"
	"io"

	"example.com/go-webhookcfg/webhookcfg"
)

// batchSize is how many changes are handed to the state at a time.
const batchSize = 1 << 10

// minLine is less than the length of any record.
const minLine = 64

// replay reads a log from its beginning to where its records end.
type replay struct {
	name    string
	file    File
	size    int64
	lines   *lineReader
	decoder decoder

	// group is the offset of the first line of the group being read, and whole
	// the offset up to which the file was on disk when it got its name.
	group, whole int64
	// end is the offset behind the last record.
	end int64
	// linesRead counts the lines behind the first; records leaves out the marks.
	linesRead, records int
	// marked says that the last record is a mark.
	marked bool
	// isTorn says that something came after the last record.
	isTorn bool
	err    error

	// full carries batches to the state, empty carries them back.
	full, empty chan *batch
}

// batch is a number of changes that come one after the other.
type batch struct {
	changes []webhookcfg.Change
	// end is the offset behind the last of them.
	end int64
}

func newReplay(file File, name string) (*replay, error) {
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	whole, err := readHeader(file, name, size)
	if err != nil {
		return nil, err
	}
	r := &replay{
		name: name, file: file, size: size,
		lines: newLineReader(file, headerLen, size), decoder: newDecoder(size / minLine),
		group: headerLen, whole: whole, end: headerLen,
		full: make(chan *batch, 2), empty: make(chan *batch, 2),
	}
	for range cap(r.empty) {
		r.empty <- &batch{changes: make([]webhookcfg.Change, 0, min(batchSize, 1+size/minLine))}
	}
	return r, nil
}

// into leads state through all that the log says. Reading goes on in a goroutine
// of its own, since most of the time goes into filling the state.
func (r *replay) into(state State, progress func(records int, end int64)) error {
	go r.read()
	records := 0
	for b := range r.full {
		state.Apply(b.changes)
		records += len(b.changes)
		progress(records, b.end)
		b.changes = b.changes[:0]
		r.empty <- b
	}
	return r.err
}

// read reads all records, and judges what comes after them.
func (r *replay) read() {
	defer close(r.full)
	b := <-r.empty
	for {
		rec, err := r.next()
		if err != nil {
			r.full <- b
			if r.err = err; errors.Is(err, io.EOF) {
				r.err = r.judgeRest()
			}
			return
		}
		if rec.isMark {
			continue
		}
		b.changes, b.end = append(b.changes, rec.change), r.end
		if len(b.changes) == cap(b.changes) {
			r.full <- b
			b = <-r.empty
		}
	}
}

// next reads a record. What is not one ends them with [io.EOF].
func (r *replay) next() (record, error) {
	line, err := r.lines.read()
	if err != nil {
		return record{}, err
	}
	rec, ok := r.decoder.decode(line)
	if !ok {
		return record{}, io.EOF
	}
	if rec.synced == r.end {
		r.group = r.end
	}
	if rec.synced != r.group {
		return record{}, r.damaged("the line is not where it was written")
	}
	r.end, r.marked = r.lines.at, rec.isMark
	r.linesRead++
	if !rec.isMark {
		r.records++
	}
	return rec, nil
}

// judgeRest reads what comes after the last record and decides whether it may be cut.
func (r *replay) judgeRest() error {
	rest := make([]byte, min(r.size-r.end, maxUnproved+1))
	if err := readFull(r.file, rest, r.end); err != nil {
		return err
	}
	if reason := judge(rest, r.end, r.whole); reason != "" {
		return r.damaged(reason)
	}
	r.isTorn = len(trimBlank(rest)) > 0
	return nil
}

// settle cuts what comes after the last record and proves the rest. A record that
// can be read need not be on disk: those that only their own group speaks for are
// written once more, be it a mark.
func (r *replay) settle() (segment, error) {
	s := segment{file: r.file, end: r.end, room: r.size, records: r.records}
	if err := s.rewrite(max(r.group, r.whole)); err != nil {
		return s, err
	}
	s.proved = r.marked || r.end == r.whole
	return s, s.finish()
}

// line returns the number of the line behind the last record.
func (r *replay) line() int { return r.linesRead + 2 }

func (r *replay) damaged(reason string) error {
	return damaged(r.name, r.line(), r.end, reason)
}
