package oplog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// How much is written and synced at a time: of a snapshot little enough for the
// syncs of the log beside it to stay quick, of what follows it more, as that has to
// go faster than the log grows.
const (
	snapshotStep = 128 << 10
	followStep   = 256 << 10
)

// rewriter writes a new file that is to take the place of a log. As it gets that
// name only when all of it is durable, its lines are one group, whatever their number.
type rewriter struct {
	segment
	fs   FS
	name string
	buf  []byte
}

// newRewriter begins a new file beside the log name, in the place of one that
// was left behind.
func newRewriter(fsys FS, name string) (*rewriter, error) {
	if err := removeTemp(fsys, name); err != nil {
		return nil, err
	}
	file, err := fsys.Create(name + tempSuffix)
	if err != nil {
		return nil, err
	}
	return &rewriter{fs: fsys, name: name, segment: segment{file: file}, buf: appendHeader(nil, 0)}, nil
}

func removeTemp(fsys FS, name string) error {
	err := fsys.Remove(name + tempSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// snapshot writes the changes that lead to a state. It takes its time: the disk
// is there for the log beside it.
func (w *rewriter) snapshot(ctx context.Context, changes iter.Seq[webhookcfg.Change]) error {
	for c := range changes {
		start := len(w.buf)
		w.endLine(appendBody(w.buf, c), start)
		if len(w.buf) < snapshotStep {
			continue
		}
		began := time.Now()
		if err := w.flush(); err != nil {
			return err
		}
		if err := rest(ctx, time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}

// rest waits much longer than a piece of work took, so that few changes meet one.
// Where a piece takes long because every sync does, it makes no difference to them.
func rest(ctx context.Context, work time.Duration) error {
	const times, longest = 20, 50 * time.Millisecond
	select {
	case <-time.After(min(times*work, longest)):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// follow copies the records that are in file from one offset to another.
func (w *rewriter) follow(ctx context.Context, file File, from, to int64) error {
	lines := newLineReader(file, from, to)
	for lines.at < to {
		line, err := lines.read()
		if err != nil || !checksumHolds(line) {
			return fmt.Errorf("%s cannot be read back between bytes %d and %d: %w", w.name, from, to, cmp.Or(err, ErrDamaged))
		}
		body := line[:bytes.LastIndex(line, []byte(syncedKey))]
		if string(body) == markBody {
			continue
		}
		start := len(w.buf)
		w.endLine(append(w.buf, body...), start)
		if len(w.buf) < followStep {
			continue
		}
		if err := errors.Join(ctx.Err(), w.flush()); err != nil {
			return err
		}
	}
	return nil
}

// endLine ends the line that begins at start in the buffer.
func (w *rewriter) endLine(buf []byte, start int) {
	w.buf = sealLine(appendSynced(buf, headerLen), start)
	w.records++
}

func (w *rewriter) flush() error {
	if err := w.write(); err != nil {
		return err
	}
	return w.file.Sync()
}

func (w *rewriter) write() error {
	if _, err := w.file.WriteAt(w.buf, w.end); err != nil {
		return err
	}
	w.end += int64(len(w.buf))
	w.buf = w.buf[:0]
	return nil
}

// finish says in the first line that all was on disk, and makes it so by one sync:
// without it the file gets no name.
func (w *rewriter) finish() (segment, error) {
	if err := w.write(); err != nil {
		return segment{}, err
	}
	if _, err := w.file.WriteAt(appendHeader(nil, w.end), 0); err != nil {
		return segment{}, err
	}
	w.room, w.proved = w.end, true
	return w.segment, w.file.Sync()
}

// discard closes and removes the file.
func (w *rewriter) discard() error {
	return errors.Join(w.file.Close(), removeTemp(w.fs, w.name))
}

// free closes a file that has lost its name, and cuts it step by step before: to
// free much at once would hold up every sync of the file system.
func free(ctx context.Context, old segment) {
	const step = 4 << 20
	for size := old.room - step; size > 0; size -= step {
		began := time.Now()
		if old.file.Truncate(size) != nil || rest(ctx, time.Since(began)) != nil {
			break
		}
	}
	// All that it had is in the new file.
	_ = old.file.Close()
}
