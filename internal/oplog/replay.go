package oplog

import (
	"errors"
	"io"

	"example.com/go-webhookcfg/webhookcfg"
)

// chunkSize is how many changes are handed to the state at a time.
const chunkSize = 1 << 10

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
	batchStart, sealedSize int64
	// end is the offset behind the last record.
	end int64
	// linesRead counts the lines behind the first; records leaves out the marks.
	linesRead, records int
	// marked says that the last record is a mark.
	endsInCheckpoint bool
	// isTorn says that something came after the last record.
	isTorn bool
	err    error

	// full carries batches to the state, empty carries them back.
	full, empty chan *chunk
}

// batch is a number of changes that come one after the other.
type chunk struct {
	changes []webhookcfg.Change
	// end is the offset behind the last of them.
	end int64
}

func newReplay(file File, name string) (*replay, error) {
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	sealedSize, err := readHeader(file, name, size)
	if err != nil {
		return nil, err
	}
	r := &replay{
		name: name, file: file, size: size,
		lines: newLineReader(file, headerLen, size), decoder: newDecoder(size / minLine),
		batchStart: headerLen, sealedSize: sealedSize, end: headerLen,
		full: make(chan *chunk, 2), empty: make(chan *chunk, 2),
	}
	for range cap(r.empty) {
		r.empty <- &chunk{changes: make([]webhookcfg.Change, 0, min(chunkSize, 1+size/minLine))}
	}
	return r, nil
}

// into leads state through all that the log says. Reading goes on in a goroutine
// of its own, since most of the time goes into filling the state.
func (r *replay) into(state State, progress func(records int, end int64)) error {
	go r.read()
	records := 0
	for c := range r.full {
		state.ApplyAll(c.changes)
		records += len(c.changes)
		progress(records, c.end)
		c.changes = c.changes[:0]
		r.empty <- c
	}
	return r.err
}

// read reads all records, and judges what comes after them.
func (r *replay) read() {
	defer close(r.full)
	c := <-r.empty
	for {
		rec, err := r.next()
		if err != nil {
			r.full <- c
			if r.err = err; errors.Is(err, io.EOF) {
				r.err = r.checkTail()
			}
			return
		}
		if rec.isCheckpoint {
			continue
		}
		c.changes, c.end = append(c.changes, rec.change), r.end
		if len(c.changes) == cap(c.changes) {
			r.full <- c
			c = <-r.empty
		}
	}
}

// next reads a record. What is not one ends them with [io.EOF].
func (r *replay) next() (logRecord, error) {
	line, err := r.lines.read()
	if err != nil {
		return logRecord{}, err
	}
	rec, ok := r.decoder.decode(line)
	if !ok {
		return logRecord{}, io.EOF
	}
	if rec.synced == r.end {
		r.batchStart = r.end
	}
	if rec.synced != r.batchStart {
		return logRecord{}, r.damaged("the line is not where it was written")
	}
	r.end, r.endsInCheckpoint = r.lines.at, rec.isCheckpoint
	r.linesRead++
	if !rec.isCheckpoint {
		r.records++
	}
	return rec, nil
}

// checkTail reads what comes after the last record and decides whether it may be cut.
func (r *replay) checkTail() error {
	rest := make([]byte, min(r.size-r.end, maxTornTail+1))
	if err := readFull(r.file, rest, r.end); err != nil {
		return err
	}
	if reason := classifyTail(rest, r.end, r.sealedSize); reason != "" {
		return r.damaged(reason)
	}
	r.isTorn = len(trimBlank(rest)) > 0
	return nil
}

// settle cuts what comes after the last record and proves the rest. A record that
// can be read need not be on disk: those that only their own group speaks for are
// written once more, be it a mark.
func (r *replay) repair() (logFile, error) {
	f := logFile{file: r.file, end: r.end, preallocated: r.size, records: r.records}
	if err := f.rewriteTail(max(r.batchStart, r.sealedSize)); err != nil {
		return f, err
	}
	f.sealed = r.endsInCheckpoint || r.end == r.sealedSize
	return f, f.seal()
}

// line returns the number of the line behind the last record.
func (r *replay) line() int { return r.linesRead + 2 }

func (r *replay) damaged(reason string) error {
	return damaged(r.name, r.line(), r.end, reason)
}
