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
	// minDead is how many bytes have to be dead before a compaction begins by itself.
	minDead = 1 << 20
	// maxFinalCopy is how much of the log may be left to copy while writers wait.
	maxFinalCopy = followStep
)

var errOutpaced = errors.New("changes come faster than they can be copied")

// Compact rewrites the log without what no longer counts. Changes go on beside
// it; they wait only while the new file takes the place of the old one. If ctx
// ends or the disk is full, the log stays as it was.
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

// compactIfDue begins a compaction if too much of the file is dead.
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
			l.options.Logger.Warn("log not compacted; it works on as it is", "file", l.name, "error", err)
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

// compact writes the state into a new file, then what was appended to the log
// since it began, and puts the new file in the place of the old one.
//
// The snapshot need not be of one moment. Whatever slipped into it or out of it
// after the offset where it began is appended after it once more, in order. What
// an entity has depends on the last change that reached it alone; whether an unset
// leaves it off depends on the base too, but the base changes only together with
// all overrides.
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

// catchUp copies what was appended since from, and while it did so, until little
// is left.
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

// install has run make the new file the log, between two groups.
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

// swap copies what was appended since from, and makes the new file the log; it
// returns the old one. Where it may or may not have the log's name, there is no way
// back: the log is then read-only.
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
	if errors.Is(err, fs.ErrPermission) { // refused, and so not done
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
	logFile
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
	return &rewriter{fs: fsys, name: name, logFile: logFile{file: file}, buf: appendHeader(nil, 0)}, nil
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
		if err := pause(ctx, time.Since(began)); err != nil {
			return err
		}
	}
	return nil
}

// rest waits much longer than a piece of work took, so that few changes meet one.
// Where a piece takes long because every sync does, it makes no difference to them.
func pause(ctx context.Context, work time.Duration) error {
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

// endLine ends the line that begins at start in the buffer.
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

// finish says in the first line that all was on disk, and makes it so by one sync:
// without it the file gets no name.
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

// free closes a file that has lost its name, and cuts it step by step before: to
// free much at once would hold up every sync of the file system.
func discardOld(ctx context.Context, old logFile) {
	const step = 4 << 20
	for size := old.preallocated - step; size > 0; size -= step {
		began := time.Now()
		if old.file.Truncate(size) != nil || pause(ctx, time.Since(began)) != nil {
			break
		}
	}
	// All that it had is in the new file.
	_ = old.file.Close()
}
