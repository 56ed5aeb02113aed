package oplog

import (
	"context"
	"errors"
	"fmt"
)

// minFree is how much free space a log wants on its disk, in addition to the space for a
// compaction.
const minFree = 1 << 20

// Healthy returns nil if all is well. Otherwise its error says why changes are refused or
// would be, or that the disk is almost full. It waits for the batch that is being written, and
// then checks the file as a batch does. It doesn't write anything itself, but what it finds
// starts a repair.
func (l *Log) Healthy(ctx context.Context) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(l.closing, func() { stop(ErrClosed) })()
	var room int64
	err := l.betweenBatches(ctx, func() error {
		room = l.liveBytes()
		if l.isBlocked() {
			return l.failed
		}
		if err := l.checkFile(); err != nil {
			return l.fail(err)
		}
		return nil
	})
	switch {
	case l.Err() != nil:
		return l.Err()
	case err != nil && ctx.Err() != nil:
		return fmt.Errorf("%w: an earlier write has not finished: %w", ErrReadOnly, context.Cause(ctx))
	case err != nil:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	return l.checkFree(room)
}

// checkFree returns an error if the disk doesn't have enough room for a compaction of this
// length.
func (l *Log) checkFree(room int64) error {
	free, err := l.fs.Free()
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil && free < room+minFree {
		err = fmt.Errorf("the disk has %d KiB free, but the next compaction needs %d KiB: free some space", free>>10, (room+minFree)>>10)
	}
	return err
}

// liveBytes estimates how long the file would be after a compaction.
func (l *Log) liveBytes() int64 {
	return int64(float64(estimateSize(l.state.Live())) * l.density)
}
