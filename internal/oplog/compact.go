package oplog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"math"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

const (
	// minDead is how many bytes must be superseded before a compaction starts by itself.
	minDead = 1 << 20
	// maxFinalCopy bounds the bytes that are copied while writers wait.
	maxFinalCopy = followStep
)

var errOutpaced = errors.New("changes arrive faster than they can be copied")

// Compact rewrites the log without superseded changes. It runs concurrently with Append,
// which waits only while the new file replaces the old one. If ctx ends or the disk is
// full, the log stays as it was.
func (l *Log) Compact(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.compacting <- struct{}{}:
	case <-l.closing.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.compacting }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.closing, cancel)()
	err := l.compact(ctx)
	if l.closing.Err() != nil && errors.Is(err, context.Canceled) {
		return ErrClosed
	}
	return err
}

// compactIfDue starts a compaction if too much of the file is superseded.
func (l *Log) compactIfDue() {
	if !l.isDue() {
		return
	}
	select {
	case l.compacting <- struct{}{}:
	default:
		return
	}
	l.retryAt = 2 * l.file.end
	go func() {
		defer func() { <-l.compacting }()
		if err := l.compact(l.closing); err != nil && l.closing.Err() == nil {
			l.options.Logger.Warn("log not compacted; it stays in use as it is", "file", l.name, "error", err)
		}
	}()
}

func (l *Log) isDue() bool {
	end, records := l.file.end, l.file.records
	ratio := cmp.Or(l.options.CompactRatio, 1)
	if ratio < 0 || end < minDead || end < l.retryAt {
		return false
	}
	live := float64(end) * float64(l.state.Len()) / float64(max(records, 1))
	dead := float64(end) - live
	return dead >= minDead && dead > ratio*live
}

// compact writes a snapshot of the state into a new file, then the changes that were
// appended to the log since the start of the snapshot, and replaces the old file.
//
// The snapshot need not be consistent: every change after the offset where it started is
// appended to it once more, in order, whether or not it is in the snapshot. The state of
// an entity depends only on the last change that reached it. Whether an unset turns it
// off depends on the base too, but the base changes only together with all overrides.
func (l *Log) compact(ctx context.Context) error {
	if err := l.failure(); err != nil {
		return err
	}
	w, err := newRewriter(l.fs, l.name)
	if err != nil {
		return err
	}
	from := l.durable.Load()
	err = w.snapshot(ctx, l.state.Snapshot())
	if err == nil {
		from, err = l.catchUp(ctx, w, from)
	}
	if err == nil {
		err = l.install(ctx, w, from)
	}
	if err != nil {
		return errors.Join(err, w.discard())
	}
	return nil
}

// catchUp copies the changes appended since from, and those appended meanwhile, until
// little is left.
func (l *Log) catchUp(ctx context.Context, w *rewriter, from int64) (int64, error) {
	for behind := int64(math.MaxInt64); ; {
		to := l.durable.Load()
		if to-from <= maxFinalCopy {
			return from, nil
		}
		if to-from >= behind {
			return from, errOutpaced
		}
		if err := w.follow(ctx, l.file.file, from, to); err != nil {
			return from, err
		}
		from, behind = to, to-from
	}
}

// install has the commit loop replace the file between two batches.
func (l *Log) install(ctx context.Context, w *rewriter, from int64) (err error) {
	var old logFile
	done := make(chan struct{})
	swap := func() {
		defer close(done)
		old, err = l.swap(w, from)
	}
	select {
	case l.tasks <- swap:
		<-done
	case <-ctx.Done():
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	l.options.Logger.Info("log compacted", "file", l.name, "bytes", w.end, "bytes_before", old.end)
	discardOld(ctx, old)
	return nil
}

// swap copies the changes appended since from, replaces the file and returns the old
// one. If it is unknown which of the two has the name, the log becomes read-only.
func (l *Log) swap(w *rewriter, from int64) (old logFile, err error) {
	if err := l.failure(); err != nil {
		return old, err
	}
	old = l.file
	if err := w.follow(l.closing, old.file, from, old.end); err != nil {
		return old, err
	}
	next, err := w.finish()
	if err != nil {
		return old, err
	}
	err = l.fs.Rename(l.name+tempSuffix, l.name)
	if errors.Is(err, fs.ErrPermission) { // the file was not renamed
		return old, err
	}
	if err == nil {
		err = l.fs.Sync()
	}
	if err != nil {
		return old, l.fail(err)
	}
	l.file, l.retryAt = next, 0
	l.durable.Store(next.end)
	return old, nil
}

// How many bytes are written and synced at a time. The steps of a snapshot are small, so
// that concurrent syncs of the log stay fast; those of the changes after it are larger,
// because they must be copied faster than the log grows.
const (
	snapshotStep = 128 << 10
	followStep   = 256 << 10
)

// rewriter writes a new file that replaces a log. Because the file gets the name of the
// log only when all of it is durable, all its lines are one batch.
type rewriter struct {
	logFile
	fs   FS
	name string
	buf  []byte
}

// newRewriter creates the temporary file of the log name; it replaces one that was left
// behind.
func newRewriter(fsys FS, name string) (*rewriter, error) {
	if err := removeTemp(fsys, name); err != nil {
		return nil, err
	}
	file, err := fsys.Create(name + tempSuffix)
	if err != nil {
		return nil, err
	}
	return &rewriter{fs: fsys, name: name, logFile: logFile{file: file}, buf: appendHeader(nil, 0)}, nil
}

func removeTemp(fsys FS, name string) error {
	err := fsys.Remove(name + tempSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// snapshot writes the changes that lead to a state. It pauses between the steps, because
// the log has precedence on the disk.
func (w *rewriter) snapshot(ctx context.Context, changes iter.Seq[webhookcfg.Change]) error {
	for c := range changes {
		start := len(w.buf)
		w.endLine(appendBody(w.buf, c), start)
		if len(w.buf) < snapshotStep {
			continue
		}
		started := time.Now()
		if err := w.flush(); err != nil {
			return err
		}
		if err := pause(ctx, time.Since(started)); err != nil {
			return err
		}
	}
	return nil
}

// pause waits much longer than a step took, so that few changes coincide with one. The
// pause is bounded: where a step takes long because every sync does, changes do not
// suffer from it.
func pause(ctx context.Context, work time.Duration) error {
	const times, longest = 20, 50 * time.Millisecond
	select {
	case <-time.After(min(times*work, longest)):
	case <-ctx.Done():
	}
	return ctx.Err()
}

// follow copies the records of file between two offsets.
func (w *rewriter) follow(ctx context.Context, file File, from, to int64) error {
	lines := newLineReader(file, from, to)
	for lines.at < to {
		line, err := lines.read()
		if err != nil || !checksumHolds(line) {
			return fmt.Errorf("%s cannot be read back between bytes %d and %d: %w", w.name, from, to, cmp.Or(err, ErrDamaged))
		}
		body := line[:bytes.LastIndex(line, []byte(syncedKey))]
		if string(body) == checkpointBody {
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

// endLine ends the line that starts at start in the buffer.
func (w *rewriter) endLine(buf []byte, start int) {
	w.buf = appendChecksum(appendSynced(buf, headerLen), start)
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

// finish records in the header that everything is on disk, and makes it so with one sync:
// without it, the file does not get its name.
func (w *rewriter) finish() (logFile, error) {
	if err := w.write(); err != nil {
		return logFile{}, err
	}
	if _, err := w.file.WriteAt(appendHeader(nil, w.end), 0); err != nil {
		return logFile{}, err
	}
	w.preallocated, w.sealed = w.end, true
	return w.logFile, w.file.Sync()
}

// discard closes and removes the file.
func (w *rewriter) discard() error {
	return errors.Join(w.file.Close(), removeTemp(w.fs, w.name))
}

// discardOld truncates a file without a name step by step and closes it: freeing much at
// once would delay every sync of the file system.
func discardOld(ctx context.Context, old logFile) {
	const step = 4 << 20
	for size := old.preallocated - step; size > 0; size -= step {
		started := time.Now()
		if old.file.Truncate(size) != nil || pause(ctx, time.Since(started)) != nil {
			break
		}
	}
	// An error loses nothing: all records are in the new file.
	_ = old.file.Close()
}
