package oplog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"example.com/go-webhookcfg/webhookcfg"
)

// flushStep is how much a rewrite writes and syncs at a time: little enough for
// the syncs of the log beside it to stay quick.
const flushStep = 256 << 10

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

// snapshot writes the changes that lead to a state.
func (w *rewriter) snapshot(ctx context.Context, changes iter.Seq[webhookcfg.Change]) error {
	for c := range changes {
		start := len(w.buf)
		w.buf = appendBody(w.buf, c)
		if err := w.endLine(ctx, start); err != nil {
			return err
		}
	}
	return nil
}

// follow copies the records that are in file from one offset to another.
func (w *rewriter) follow(ctx context.Context, file File, from, to int64) error {
	lines := newLineReader(file, from, to)
	for lines.at < to {
		line, err := lines.read()
		if err != nil || !checksumHolds(line) {
			return errors.Join(err, fmt.Errorf("%w: %s cannot be read back from byte %d to %d", ErrDamaged, w.name, from, to))
		}
		body := line[:bytes.LastIndex(line, []byte(syncedKey))]
		if string(body) == markBody {
			continue
		}
		start := len(w.buf)
		w.buf = append(w.buf, body...)
		if err := w.endLine(ctx, start); err != nil {
			return err
		}
	}
	return nil
}

// endLine ends the line that begins at start in the buffer.
func (w *rewriter) endLine(ctx context.Context, start int) error {
	w.buf = sealLine(appendSynced(w.buf, headerLen), start)
	w.records++
	if len(w.buf) < flushStep {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return w.flush()
}

func (w *rewriter) flush() error {
	if _, err := w.file.WriteAt(w.buf, w.end); err != nil {
		return err
	}
	w.end += int64(len(w.buf))
	w.buf = w.buf[:0]
	return w.file.Sync()
}

// finish says in the first line that all was on disk, and makes it so.
func (w *rewriter) finish() (segment, error) {
	if err := w.flush(); err != nil {
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
