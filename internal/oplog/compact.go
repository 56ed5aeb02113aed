package oplog

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
)

const (
	// minDead is how many bytes have to be dead before a compaction begins by itself.
	minDead = 1 << 20
	// closeEnough is how much of the log may be left to copy while writers wait.
	closeEnough = followStep
)

var errOutrun = errors.New("changes come faster than they can be copied")

// Compact rewrites the log without what no longer counts. Changes go on beside
// it; they wait only while the new file takes the place of the old one. If ctx
// ends or the disk is full, the log stays as it was.
func (l *Log) Compact(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.turn <- struct{}{}:
	case <-l.closing.Done():
		return ErrClosed
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-l.turn }()
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
	case l.turn <- struct{}{}:
	default:
		return
	}
	l.retryAt = 2 * l.segment.end
	go func() {
		defer func() { <-l.turn }()
		if err := l.compact(l.closing); err != nil && l.closing.Err() == nil {
			l.options.Logger.Warn("log not compacted; it works on as it is", "file", l.name, "error", err)
		}
	}()
}

func (l *Log) isDue() bool {
	end, records := l.segment.end, l.segment.records
	ratio := cmp.Or(l.options.CompactRatio, 1)
	if ratio < 0 || end < minDead || end < l.retryAt {
		return false
	}
	live := float64(end) * float64(l.backlog.Len()) / float64(max(records, 1))
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
	err = w.snapshot(ctx, l.backlog.Snapshot())
	if err == nil {
		from, err = l.catchUp(ctx, w, from)
	}
	if err == nil {
		err = l.putInPlace(ctx, w, from)
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
		if to-from <= closeEnough {
			return from, nil
		}
		if to-from >= behind {
			return from, errOutrun
		}
		if err := w.follow(ctx, l.segment.file, from, to); err != nil {
			return from, err
		}
		from, behind = to, to-from
	}
}

// putInPlace has run make the new file the log, between two groups.
func (l *Log) putInPlace(ctx context.Context, w *rewriter, from int64) (err error) {
	var old segment
	done := make(chan struct{})
	swap := func() {
		defer close(done)
		old, err = l.swap(w, from)
	}
	select {
	case l.between <- swap:
		<-done
	case <-ctx.Done():
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	l.options.Logger.Info("log compacted", "file", l.name, "bytes", w.end, "bytes_before", old.end)
	free(ctx, old)
	return nil
}

// swap copies what was appended since from, and makes the new file the log; it
// returns the old one. Where it may or may not have the log's name, there is no way
// back: the log is then read-only.
func (l *Log) swap(w *rewriter, from int64) (old segment, err error) {
	if err := l.failure(); err != nil {
		return old, err
	}
	old = l.segment
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
	l.segment, l.retryAt = next, 0
	l.durable.Store(next.end)
	return old, nil
}
