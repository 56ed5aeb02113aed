package oplog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"math"
	"slices"
	"sort"

	"example.com/go-webhookcfg/webhookcfg"
)

// Region is a part of a file.
type Region struct {
	// Line is the number of the line where it starts.
	Line int
	// Offset and Length are in bytes.
	Offset, Length int64
}

// Check reads the log name like [Open], but doesn't change it. The log must not be open.
// Check returns the length of the file and the number of changes, and calls torn for a torn
// tail. If the log is damaged, the error wraps [ErrDamaged].
func Check(ctx context.Context, fsys FS, name string, logger *slog.Logger, torn func(Region)) (size int64, changes int, err error) {
	file, err := fsys.Open(name)
	if err != nil {
		return 0, 0, err
	}
	defer file.Close()
	r, err := newReplay(file, name)
	if err != nil {
		return 0, 0, err
	}
	err = r.into(ctx, func([]webhookcfg.Change) {}, logger)
	if err == nil && r.isTorn {
		torn(Region{Line: r.line(), Offset: r.end, Length: r.size - r.end})
	}
	return r.size, r.records, err
}

// Salvage copies the intact changes of the damaged log name to the new log fresh. The damaged
// log must not be open. Salvage applies the changes to state, which must be empty, and then
// writes those that aren't superseded. It returns the length of the damaged file and how many
// of its changes were intact, and calls lost for each region that it leaves out.
func Salvage(ctx context.Context, from FS, name string, to FS, fresh string, state State, logger *slog.Logger, lost func(Region)) (size int64, changes int, err error) {
	s, err := newSalvage(from, name, logger, lost)
	if err != nil {
		return 0, 0, err
	}
	defer s.file.Close()
	if err := s.find(ctx); err != nil {
		return s.size, 0, err
	}
	if len(s.runs) == 0 && s.covered == 0 {
		return s.size, 0, fmt.Errorf("%w: %s has neither a header nor an intact change: restore a backup", ErrDamaged, name)
	}
	if changes, err = s.into(ctx, state); err != nil {
		return s.size, 0, err
	}
	err = writeCopy(ctx, to, fresh, logger, func(w *rewriter) error {
		for c := range state.Snapshot() {
			w.add(c)
			if len(w.buf) < followStep {
				continue
			}
			if err := errors.Join(ctx.Err(), w.write()); err != nil {
				return err
			}
		}
		return nil
	})
	return s.size, changes, err
}

// salvage reads everything that is intact in a file.
type salvage struct {
	file    File
	logger  *slog.Logger
	name    string
	size    int64
	covered int64 // by the header, or 0 if no copy of it is valid
	// headerLen is the length of the header, if a copy of it is valid.
	headerLen int64
	// lost is called for each region that isn't intact, or isn't in its place.
	lost func(Region)
	// runs are the intact parts of the file, in order.
	runs []salvageRun
}

// salvageRun is a sequence of records that are still next to each other, as they were
// written.
type salvageRun struct {
	Region
	// first and last are the "synced" of the first and the last record.
	first, last int64
	// shift is how far the batches are from where they were written. It isn't known before a
	// second batch is in the run.
	shift      int64
	knowsShift bool

	// weight is the length of the longest sequence of runs that ends with this one. before is
	// the index of the run in front of it, or -1 if there is none.
	weight int64
	before int
	// isTrusted reports that the run is in the longest sequence of all. next is the first
	// "synced" of the next trusted run.
	isTrusted bool
	next      int64
}

// newSalvage opens the log name, which must not be open. The header can be damaged, but it's
// an error if it has a later version.
func newSalvage(fsys FS, name string, logger *slog.Logger, lost func(Region)) (*salvage, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	s := &salvage{file: file, logger: logger, name: name, lost: lost}
	if s.size, err = file.Size(); err == nil {
		var h logHeader
		if h, err = readHeader(file, name, s.size); errors.Is(err, ErrDamaged) {
			err = nil
		}
		s.covered, s.headerLen = h.synced, h.length
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return s, nil
}

// find finds the runs, and reports the gaps between them.
func (s *salvage) find(ctx context.Context) error {
	var start int64
	line := 1
	if s.covered > 0 && s.size >= s.headerLen {
		start, line = s.headerLen, 1+int(s.headerLen/headerCopyLen)
	}
	gap := Region{Line: line, Offset: start}
	isBlank := true
	reading := newProgress(s.logger, s.name, s.size)
	err := s.scan(ctx, Region{line, start, s.size - start}, func(p filePiece) {
		if !p.isRecord {
			gap.Length += p.Length
			isBlank = isBlank && len(trimBlank(p.text)) == 0
			return
		}
		if gap.Length > 0 {
			s.lost(gap)
		}
		gap, isBlank = Region{Line: p.Line + 1, Offset: p.Offset + p.Length}, true
		s.add(p)
		reading.add(1, gap.Offset)
	})
	if err != nil {
		return err
	}
	// Blanks after the last record were preallocated, unless the header covers them.
	if gap.Length > 0 && !(isBlank && gap.Offset >= s.covered) {
		s.lost(gap)
	}
	if missing := s.covered - s.size; missing > 0 {
		s.lost(Region{Line: gap.Line, Offset: s.size, Length: missing})
	}
	return nil
}

// add adds a record to the last run, or starts another one.
func (s *salvage) add(p filePiece) {
	synced, shift := p.rec.synced, p.Offset-p.rec.synced
	if n := len(s.runs); n > 0 {
		r := &s.runs[n-1]
		isNext := r.Offset+r.Length == p.Offset
		switch {
		case isNext && synced == r.last:
			r.Length += p.Length
			return
		case isNext && synced > r.last && (!r.knowsShift || shift == r.shift):
			r.Length += p.Length
			r.last, r.shift, r.knowsShift = synced, shift, true
			return
		}
	}
	s.runs = append(s.runs, salvageRun{Region: p.Region, first: synced, last: synced})
}

// trust finds the longest sequence of runs in which "synced" doesn't decrease. If a disk or a
// copy put a block into the wrong place, its records are older or newer than those around it.
func (s *salvage) trust() {
	// ends has the indexes of runs that can end a sequence, in the order of both their last
	// "synced" and their weight.
	var ends []int
	for i := range s.runs {
		r := &s.runs[i]
		r.weight, r.before = r.Length, -1
		at := sort.Search(len(ends), func(e int) bool { return s.runs[ends[e]].last > r.first })
		if at > 0 {
			r.before = ends[at-1]
			r.weight += s.runs[r.before].weight
		}
		from := sort.Search(len(ends), func(e int) bool { return s.runs[ends[e]].last >= r.last })
		if from > 0 && s.runs[ends[from-1]].weight >= r.weight {
			continue
		}
		to := from
		for to < len(ends) && s.runs[ends[to]].weight <= r.weight {
			to++
		}
		ends = slices.Replace(ends, from, to, i)
	}
	i, next := -1, int64(math.MaxInt64)
	if len(ends) > 0 {
		i = ends[len(ends)-1]
	}
	for n := len(s.runs) - 1; n >= 0; n-- {
		r := &s.runs[n]
		r.next = next
		if n == i {
			i, next, r.isTrusted = r.before, r.first, true
		}
	}
}

// into applies the changes of the runs and returns their number. From a run that isn't
// trusted, it only takes changes that fit between the trusted runs around it. A line can also
// be a copy of one in the same batch, at the end of the trusted run before. Then it counts
// once.
func (s *salvage) into(ctx context.Context, state State) (changes int, err error) {
	s.trust()
	applied, seed, seen := int64(0), maphash.MakeSeed(), map[uint64]bool{}
	applying := newProgress(s.logger, s.name, s.size)
	part := make([]webhookcfg.Change, 0, chunkSize)
	flush := func(end int64) {
		state.ApplyAll(part)
		applying.add(len(part), end)
		part = part[:0]
	}
	for _, r := range s.runs {
		var lines []uint64 // of the last batch
		err := s.scan(ctx, r.Region, func(p filePiece) {
			synced := p.rec.synced
			switch {
			case !p.isRecord:
				return
			case !r.isTrusted && (synced <= applied || synced >= r.next),
				synced == r.first && len(seen) > 0 && seen[maphash.Bytes(seed, p.text)]:
				s.lost(p.Region)
				return
			case r.isTrusted && synced == r.last && synced == r.next:
				lines = append(lines, maphash.Bytes(seed, p.text))
			}
			applied = synced
			if part = append(part, p.rec.change); len(part) == cap(part) {
				flush(p.Offset)
			}
		})
		if err != nil {
			return 0, err
		}
		if r.isTrusted && r.first != r.last {
			clear(seen)
		}
		for _, line := range lines {
			seen[line] = true
		}
	}
	flush(s.size)
	applying.done("intact changes read")
	return applying.records, nil
}

// filePiece is an intact record, or other bytes.
type filePiece struct {
	Region
	text     []byte // valid until the next piece
	rec      logRecord
	isRecord bool
}

const recordStart = `{"op":"`

// scan yields the pieces of a region in order. A record can start or end within a line.
// That's safe, because a string can't contain the start or the checksum of a record: its
// quotation marks are escaped.
func (s *salvage) scan(ctx context.Context, part Region, yield func(filePiece)) error {
	lines := newLineReader(s.file, part.Offset, part.Offset+part.Length)
	for line := part.Line; ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := lines.at
		text, err := lines.read()
		isLine := err == nil
		if errors.Is(err, io.EOF) {
			text, err = lines.drop(), nil
		}
		if err != nil {
			return fmt.Errorf("%s cannot be read after byte %d: %w", s.name, at, err)
		}
		if lines.at == at {
			return nil
		}
		split(text, func(from, to int, rec logRecord, isRecord bool) {
			p := filePiece{Region{line, at + int64(from), int64(to - from)}, text[from:to], rec, isRecord}
			if to == len(text) {
				p.Length = lines.at - p.Offset // add the end of the line
			}
			yield(p)
		})
		if isLine {
			line++
		}
	}
}

// split yields the pieces of a line: its records, and anything between them.
func split(text []byte, yield func(from, to int, rec logRecord, isRecord bool)) {
	done := 0
	for at := 0; ; {
		length := bytes.Index(text[at:], []byte(crcKey))
		end := at + length + crcLen
		if length < 0 || end > len(text) {
			break
		}
		if start := bytes.LastIndex(text[at:at+length], []byte(recordStart)); start >= 0 {
			start += at
			if rec, ok := decode(text[start:end]); ok {
				if start > done {
					yield(done, start, logRecord{}, false)
				}
				yield(start, end, rec, true)
				done, at = end, end
				continue
			}
		}
		at += length + len(crcKey)
	}
	if done < len(text) || done == 0 {
		yield(done, len(text), logRecord{}, false)
	}
}

// drop skips the part of a line that has been read, if the line is too long or never ends,
// and returns it. It stops where a record may start.
func (r *lineReader) drop() []byte {
	n := len(r.buf)
	if r.next < r.limit {
		n -= len(recordStart) - 1
		if start := bytes.LastIndex(r.buf[1:], []byte(recordStart)); start >= 0 {
			n = start + 1
		}
	}
	dropped := r.buf[:n]
	r.buf = r.buf[n:]
	r.at += int64(n)
	return dropped
}
