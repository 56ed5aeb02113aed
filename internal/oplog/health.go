package oplog

import (
	"context"
	"errors"
	"fmt"
)

// minFree is the room that a log wants on its disk in addition to that for a compaction.
const minFree = 1 << 20

// Healthy returns why changes are refused now, or would be, or why soon nothing will fit on the
// disk; nil if all is well. It waits for the batch that is being written, but writes nothing.
func (l *Log) Healthy(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(l.closing, func() { stop(ErrClosed) })()
	var room int64
	err := l.betweenBatches(ctx, func() error {
		room = l.liveBytes()
		return l.checkName()
	})
	switch {
	case l.Err() != nil:
		return l.Err()
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w: still writing: %w", ErrReadOnly, context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return l.checkFree(room)
}

// checkFree returns an error if the disk has too little room to compact the log.
func (l *Log) checkFree(room int64) error {
	free, err := l.fs.Free()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil && free < room+minFree {
		err = fmt.Errorf("the disk has %d KiB free, and the next compaction needs %d KiB", free>>10, (room+minFree)>>10)
	}
	return err
}

// liveBytes estimates how long the file is after a compaction.
func (l *Log) liveBytes() int64 {
	return int64(float64(estimateSize(l.state.Live())) * l.density)
}
