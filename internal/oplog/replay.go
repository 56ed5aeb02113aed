package oplog

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// chunkSize is how many changes are applied to the state at a time.
const chunkSize = 1 << 10

// minLine is how long a record is at least.
const minLine = 64

// progressEvery is how often a long read reports its progress.
const progressEvery = 2 * time.Second

// readProgress logs how far a file has been read.
type readProgress struct {
	logger            *slog.Logger
	name              string
	size, end         int64
	records           int
	started, reported time.Time
}

func newProgress(logger *slog.Logger, name string, size int64) *readProgress {
	now := time.Now()
	return &readProgress{logger: logger, name: name, size: size, started: now, reported: now}
}

// add counts more records. The last of them ends at the offset end.
func (p *readProgress) add(records int, end int64) {
	p.records += records
	p.end = end
	if now := time.Now(); now.Sub(p.reported) >= progressEvery {
		p.reported = now
		p.logger.Info("reading log", "file", p.name, "records", p.records, "bytes", end, "of", p.size)
	}
}

func (p *readProgress) done(message string) {
	p.logger.Info(message, "file", p.name, "records", p.records, "bytes", p.end, "duration", time.Since(p.started))
}

// replay reads a log from its start to its last record.
type replay struct {
	name   string
	file   File
	size   int64
	lines  *lineReader
	decode func(line []byte) (logRecord, bool)

	header logHeader
	// batchStart is the offset of the first line of the batch being read.
	batchStart int64
	// last is the start of the last record, and end the offset after it.
	last, end int64
	records   int
	// isTorn reports that the file has a torn tail.
	isTorn bool
	err    error

	// full carries chunks to the state, and empty carries them back.
	full, empty chan *chunk
}

// chunk is a few consecutive changes.
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
	header, err := readHeader(file, name, size)
	if err != nil {
		return nil, err
	}
	r := &replay{
		name: name, file: file, size: size,
		lines: newLineReader(file, headerLen, size), decode: decode,
		header: header, batchStart: headerLen, last: headerLen, end: headerLen,
		full: make(chan *chunk, 2), empty: make(chan *chunk, 2),
	}
	for range cap(r.empty) {
		r.empty <- &chunk{changes: make([]webhookcfg.Change, 0, min(chunkSize, 1+size/minLine))}
	}
	return r, nil
}

// into applies all changes of the log. It reads and decodes them in a second goroutine, so
// that opening a log can use two cores (bench, "Opening").
func (r *replay) into(ctx context.Context, apply func([]webhookcfg.Change), logger *slog.Logger) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	reading := newProgress(logger, r.name, r.size)
	go r.read(ctx)
	for c := range r.full {
		apply(c.changes)
		reading.add(len(c.changes), c.end)
		c.changes = c.changes[:0]
		r.empty <- c
	}
	if r.err == nil {
		reading.done("log read")
	}
	return r.err
}

// read reads all records and checks the bytes after them.
func (r *replay) read(ctx context.Context) {
	defer close(r.full)
	c := <-r.empty
	for {
		rec, err := r.next()
		if err != nil {
			c.end = r.end
			r.full <- c
			if r.err = err; errors.Is(err, io.EOF) {
				r.err = r.checkTail()
			}
			return
		}
		c.changes, c.end = append(c.changes, rec.change), r.end
		if len(c.changes) == cap(c.changes) {
			if r.err = ctx.Err(); r.err != nil {
				return
			}
			r.full <- c
			c = <-r.empty
		}
	}
}

// next reads a record. At the first line that isn't one, the error is [io.EOF].
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
	r.last, r.end = r.end, r.lines.at
	r.records++
	return rec, nil
}

// line returns the number of the first line after the last record.
func (r *replay) line() int { return r.records + 3 }

func (r *replay) damaged(reason string) error {
	return damaged(r.name, r.line(), r.end, reason)
}
