package oplog

import (
	"errors"
	"io"

	"example.com/go-webhookcfg/webhookcfg"
)

// chunkSize is how many changes are applied to the state at a time.
const chunkSize = 1 << 10

// minLine is a lower bound of the length of a record.
const minLine = 64

// replay reads a log from its start to its last record.
type replay struct {
	name   string
	file   File
	size   int64
	lines  *lineReader
	decode func(line []byte) (logRecord, bool)

	// batchStart is the offset of the first line of the batch being read, and sealedSize
	// the offset up to which the header covers the file.
	batchStart, sealedSize int64
	// end is the offset after the last record.
	end int64
	// linesRead counts the lines after the header; records leaves out the checkpoints.
	linesRead, records int
	// endsInCheckpoint reports that the last record is a checkpoint.
	endsInCheckpoint bool
	// isTorn reports that there is a torn tail.
	isTorn bool
	err    error

	// full carries chunks to the state, empty carries them back.
	full, empty chan *chunk
}

// chunk is a number of consecutive changes.
type chunk struct {
	changes []webhookcfg.Change
	// end is the offset after the last of them.
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
		lines: newLineReader(file, headerLen, size), decode: decode,
		batchStart: headerLen, sealedSize: sealedSize, end: headerLen,
		full: make(chan *chunk, 2), empty: make(chan *chunk, 2),
	}
	for range cap(r.empty) {
		r.empty <- &chunk{changes: make([]webhookcfg.Change, 0, min(chunkSize, 1+size/minLine))}
	}
	return r, nil
}

// into applies all changes of the log to state. Reading and decoding have a goroutine of
// their own, so that opening uses two cores (bench, "Opening").
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

// read reads all records and checks the bytes after them.
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

// next reads a record. At the first line that is no record, the error is [io.EOF].
func (r *replay) next() (logRecord, error) {
	line, err := r.lines.read()
	if err != nil {
		return logRecord{}, err
	}
	rec, ok := r.decode(line)
	if !ok {
		return logRecord{}, io.EOF
	}
	if rec.synced == r.end {
		r.batchStart = r.end
	}
	if rec.synced != r.batchStart {
		return logRecord{}, r.damaged("the line is not at the offset where it was written")
	}
	r.end, r.endsInCheckpoint = r.lines.at, rec.isCheckpoint
	r.linesRead++
	if !rec.isCheckpoint {
		r.records++
	}
	return rec, nil
}

// checkTail reads the bytes after the last record and returns an error if they are
// damage.
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

// repair cuts the file after the last record and seals it. A record that can be read
// need not be on disk: those of the last batch, even if it is a checkpoint, are written
// once more.
func (r *replay) repair() (logFile, error) {
	f := logFile{file: r.file, end: r.end, preallocated: r.size, records: r.records}
	if err := f.rewriteTail(max(r.batchStart, r.sealedSize)); err != nil {
		return f, err
	}
	f.sealed = r.endsInCheckpoint || r.end == r.sealedSize
	return f, f.seal()
}

// line returns the number of the first line after the last record.
func (r *replay) line() int { return r.linesRead + 2 }

func (r *replay) damaged(reason string) error {
	return damaged(r.name, r.line(), r.end, reason)
}
