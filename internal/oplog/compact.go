package oplog

import (
	"context"
	"errors"
	"math"
	"time"
)

// minDead is how many bytes must be superseded before a compaction starts by itself.
const minDead = 1 << 20

// Compact rewrites the log without superseded changes. You can go on appending meanwhile.
// Append waits only while the new file replaces the old one, or if changes arrive faster than
// Compact can copy them. If ctx ends or the disk is full, the log stays as it was.
func (l *Log) Compact(ctx context.Context) error {
	return l.withFile(ctx, l.compact)
}

// withFile runs work, which can read the file by offset: nothing replaces the file meanwhile.
// The context of work ends with ctx and with Close.
func (l *Log) withFile(ctx context.Context, work func(context.Context) error) error {
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
	return l.withToken(ctx, work)
}

// withToken is withFile for a caller that has already put a token into compacting. It takes
// the token back.
func (l *Log) withToken(ctx context.Context, work func(context.Context) error) error {
	defer func() { <-l.compacting }()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(l.closing, func() { stop(ErrClosed) })()
	err := work(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
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
	l.compactAt = 2 * l.file.end
	go func() {
		if err := l.withToken(l.closing, l.compact); err != nil && !errors.Is(err, ErrClosed) {
			l.options.Logger.Warn("log not compacted; it stays in use as it is", "file", l.name, "error", err)
		}
	}()
}

func (l *Log) isDue() bool {
	end := l.file.end
	if l.options.CompactManually || end < minDead || end < l.compactAt {
		return false
	}
	live := l.liveBytes()
	dead := end - live
	return dead >= minDead && dead > live
}

// estimateSize estimates the length of a file with this many changes, given the total length
// of their names and URLs. It doesn't count escapes. Some names have many, so density
// corrects the estimate.
func estimateSize(changes int, bytes int64) int64 {
	const line = len(`{"op":"set","client":"","entity":"","url":"","time":"2026-01-02T03:04:05Z","synced":174`) + crcLen + 1
	return headerLen + int64(changes)*int64(line) + bytes
}

// compact writes a snapshot of the state into a new file, adds the changes that were appended
// since the snapshot started, and replaces the old file.
//
// The snapshot doesn't have to be consistent, because every change since its start is
// appended once more, in order, even if the snapshot has it already. An entity's state
// depends only on the last change that reached it. Whether an unset turns the entity off
// depends on the base too, but the base only changes together with all overrides.
func (l *Log) compact(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c := &compaction{stop, make(chan struct{})}
	l.setCompaction(c)
	defer close(c.done)
	defer l.setCompaction(nil)
	err := l.rewrite(ctx)
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// compaction is a running compaction. It closes done at its end.
type compaction struct {
	stop context.CancelCauseFunc
	done chan struct{}
}

// end stops the compaction and waits for it. A nil compaction is fine. Call it from the
// commit loop.
func (c *compaction) end(cause error) {
	if c != nil {
		c.stop(cause)
		<-c.done
	}
}

func (l *Log) setCompaction(c *compaction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.compaction = c
}

// rewrite does the work of compact.
func (l *Log) rewrite(ctx context.Context) error {
	file, from, err := l.position(ctx)
	if err != nil {
		return err
	}
	w, err := replaceTemp(l.fs, l.name)
	if err != nil {
		return err
	}
	w.isBusy = l.traffic()
	if err = w.snapshot(ctx, l.state.Snapshot()); err == nil {
		from, err = l.catchUp(ctx, w, file, from)
	}
	if err == nil {
		err = l.replace(ctx, w, from)
	}
	if err != nil {
		return errors.Join(err, w.discard())
	}
	return nil
}

const (
	// maxFinalCopy is how many bytes are copied while writers wait for the new file.
	maxFinalCopy = 256 << 10
	// maxHeld is the limit instead if changes arrive faster than they can be copied.
	maxHeld = 4 << 20
)

// catchUp copies the changes appended to file since from, and keeps copying new ones until
// little is left. If a round doesn't at least halve the rest, changes arrive too fast. Then
// it makes writers wait while it copies the rest in parts, and lets them write one batch
// between two parts.
func (l *Log) catchUp(ctx context.Context, w *rewriter, file File, from int64) (int64, error) {
	isOutrun := false
	for behind := int64(math.MaxInt64); ; {
		to := l.durable.Load()
		left := to - from
		isOutrun = isOutrun || left > behind/2
		var err error
		switch {
		case left <= maxFinalCopy, isOutrun && left <= maxHeld:
			return from, nil
		case isOutrun:
			err = l.betweenBatches(ctx, func() (err error) {
				from, err = w.follow(ctx, file, from, from+maxHeld, to)
				return err
			})
		default:
			from, err = w.follow(ctx, file, from, to, to)
		}
		if err != nil {
			return from, err
		}
		behind = left
	}
}

// traffic returns a function that reports whether changes were written since its last call,
// or are waiting now.
func (l *Log) traffic() func() bool {
	seen := l.durable.Load()
	return func() bool {
		before := seen
		seen = l.durable.Load()
		return seen != before || l.hasCallers()
	}
}

// betweenBatches runs a task in the commit loop. Writers wait meanwhile.
func (l *Log) betweenBatches(ctx context.Context, task func() error) (err error) {
	done := make(chan struct{})
	select {
	case l.tasks <- func() { defer close(done); err = task() }:
		<-done
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// replace puts the new file in place of the log.
func (l *Log) replace(ctx context.Context, w *rewriter, from int64) error {
	var loser logFile
	err := l.betweenBatches(ctx, func() (err error) {
		loser, err = l.swap(ctx, w, from)
		return err
	})
	if loser.file != nil {
		_ = loser.file.Close() // its records are in the other file
	}
	return err
}

// swap copies the changes appended since from and replaces the file. It returns the file that
// is no longer in use. If it can't find out which of the two has the name, both stay open
// until a repair.
func (l *Log) swap(ctx context.Context, w *rewriter, from int64) (loser logFile, err error) {
	if l.isBlocked() {
		return loser, l.failed
	}
	if err := l.checkName(); err != nil {
		return loser, err
	}
	before := l.file.end
	if _, err := w.follow(ctx, l.file.file, from, before, before); err != nil {
		return loser, err
	}
	loser, err = l.install(w)
	if l.isBlocked() {
		return loser, l.fail(err)
	}
	if err == nil {
		l.options.Logger.Info("log compacted", "file", l.name, "bytes", l.file.end, "bytes_before", before)
	}
	return loser, err
}

// install replaces the file of the log with a complete new one.
func (l *Log) install(w *rewriter) (loser logFile, err error) {
	next, err := w.finish()
	if err != nil {
		return loser, err
	}
	err = l.fs.Rename(l.name+tempSuffix, l.name)
	l.rival, w.file = next, nil
	loser, unsettled := l.settleName()
	if unsettled != nil || l.file.file != next.file {
		return loser, errors.Join(err, unsettled)
	}
	l.compactAt, l.density = 0, w.density
	l.measure(func(s *Stats) { s.Compactions++ })
	return loser, nil
}

// pause waits much longer than a step took, so that few changes coincide with a step. But it
// has a limit: if steps are slow because every sync is slow, pauses don't help.
func pause(ctx context.Context, work time.Duration) {
	const times, longest = 20, 50 * time.Millisecond
	select {
	case <-time.After(min(times*work, longest)):
	case <-ctx.Done():
	}
}
