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

const (
	// snapshotStep is how many bytes of a snapshot are written and synced at a time. It's
	// small so that the log's own syncs stay fast.
	snapshotStep = 128 << 10
	// followStep is how many bytes are written at a time when changes are copied after the
	// snapshot, and maxUnsynced how many before a sync. They're larger, because copying must
	// be faster than the log grows.
	followStep  = 256 << 10
	maxUnsynced = maxHeld
)

// rewriter writes a new file that replaces a log. The file gets the log's name only when all
// of it is durable, so all its lines can be one batch.
type rewriter struct {
	logFile
	fs   FS
	name string
	buf  []byte
	// unsynced counts the bytes written since the last sync.
	unsynced int
	// density is the actual length of the snapshot divided by the estimated one.
	density float64
	// isBusy reports whether snapshot should pause. If it's nil, snapshot never does.
	isBusy func() bool
}

// newRewriter creates the temporary file of the log name. The file must not exist.
func newRewriter(fsys FS, name string) (*rewriter, error) {
	file, err := fsys.Create(name + tempSuffix)
	if err != nil {
		return nil, err
	}
	return &rewriter{fs: fsys, name: name, logFile: logFile{file: file, checked: headerLen}, buf: appendHeader(nil, 0)}, nil
}

// replaceTemp is newRewriter for the holder of the log's lock. A temporary file that already
// exists was left behind, so replaceTemp removes it.
func replaceTemp(fsys FS, name string) (*rewriter, error) {
	if err := removeTemp(fsys, name); err != nil {
		return nil, err
	}
	return newRewriter(fsys, name)
}

func removeTemp(fsys FS, name string) error {
	err := fsys.Remove(name + tempSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// snapshot writes the changes that lead to a state. While the log is busy, it pauses between
// steps, because the log's own writes come first.
func (w *rewriter) snapshot(ctx context.Context, changes iter.Seq[webhookcfg.Change]) error {
	var bytes int64
	for c := range changes {
		bytes += int64(len(c.Client) + len(c.Scope.Entity()) + len(c.URL.Reveal()))
		w.add(c)
		if len(w.buf) < snapshotStep {
			continue
		}
		started := time.Now()
		if err := w.write(); err != nil {
			return err
		}
		if err := w.sync(); err != nil {
			return err
		}
		if w.isBusy != nil && w.isBusy() {
			pause(ctx, time.Since(started))
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	// The state has changed since, so don't use its present estimate.
	w.density = float64(w.size()) / float64(estimateSize(w.records, bytes))
	return nil
}

// follow copies the records of file that start between from and to. It reads no further than
// limit, which must be the end of a record. It returns the end of the last record that it
// copied.
func (w *rewriter) follow(ctx context.Context, file File, from, to, limit int64) (int64, error) {
	lines := newLineReader(file, from, limit)
	for lines.at < min(to, limit) {
		line, err := lines.read()
		if err != nil || !checksumHolds(line) {
			return from, fmt.Errorf("%s cannot be read back between bytes %d and %d: %w", w.name, from, limit, cmp.Or(err, ErrDamaged))
		}
		body := line[:bytes.LastIndex(line, []byte(syncedKey))]
		start := len(w.buf)
		w.endLine(append(w.buf, body...), start)
		if len(w.buf) < followStep {
			continue
		}
		err = errors.Join(ctx.Err(), w.write())
		if err == nil && w.unsynced >= maxUnsynced {
			err = w.sync()
		}
		if err != nil {
			return from, err
		}
	}
	return lines.at, nil
}

// add appends the line of a change to the buffer.
func (w *rewriter) add(c webhookcfg.Change) {
	start := len(w.buf)
	w.endLine(appendBody(w.buf, c), start)
}

// endLine ends the line that starts at start in the buffer.
func (w *rewriter) endLine(buf []byte, start int) {
	w.buf = appendChecksum(appendSynced(buf, headerLen), start)
	w.checked = w.end + int64(start)
	w.records++
}

// size is the length of the file once everything is written.
func (w *rewriter) size() int64 { return w.end + int64(len(w.buf)) }

func (w *rewriter) write() error {
	if _, err := w.file.WriteAt(w.buf, w.end); err != nil {
		return err
	}
	w.end = w.size()
	w.unsynced += len(w.buf)
	w.buf = w.buf[:0]
	return nil
}

func (w *rewriter) sync() error {
	w.unsynced = 0
	return w.file.Sync()
}

// finish records in the header that everything is on disk, and makes that true with one sync.
// Don't give the file its name before.
func (w *rewriter) finish() (logFile, error) {
	if err := w.write(); err != nil {
		return logFile{}, err
	}
	w.preallocated, w.synced = w.end, w.end
	copy(w.lines[:], appendHeader(nil, w.end))
	if _, err := w.file.WriteAt(w.lines[:], 0); err != nil {
		return logFile{}, err
	}
	return w.logFile, w.sync()
}

// discard closes and removes the file, unless it has replaced the log.
func (w *rewriter) discard() error {
	var err error
	if w.file != nil {
		err = w.file.Close()
	}
	return errors.Join(err, removeTemp(w.fs, w.name))
}
