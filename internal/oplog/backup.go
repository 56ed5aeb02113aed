package oplog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"example.com/go-webhookcfg/webhookcfg"
)

// Backup writes a copy of the log to the new log name in dst, concurrently with Append. It
// is the log as it was between two batches during the call. It does not need the log to be
// writable. If Close is called meanwhile, Backup ends with [ErrClosed].
func (l *Log) Backup(ctx context.Context, dst FS, name string) error {
	return l.withFile(ctx, func(ctx context.Context) error {
		return writeCopy(ctx, dst, name, l.options.Logger, func(w *rewriter) error {
			file, from, err := l.position(ctx)
			if err != nil {
				return err
			}
			if err := w.snapshot(ctx, l.state.Snapshot()); err != nil {
				return err
			}
			// The snapshot can have parts of the batch that is being applied.
			_, to, err := l.position(ctx)
			if err == nil {
				_, err = w.follow(ctx, file, from, to, to)
			}
			return err
		})
	})
}

// position returns the file and the offset after its last record between two batches, all
// of which are applied. It is for a caller that has put a token into compacting, so that
// the file stays the same.
func (l *Log) position(ctx context.Context) (file File, end int64, err error) {
	err = l.betweenBatches(ctx, func() error {
		if l.rival.file != nil { // a repair decides which of the two files it is
			return l.failed
		}
		file, end = l.file.file, l.file.end
		return nil
	})
	return file, end, err
}

// writeCopy creates a complete log, which gets its name only after it was read back. It
// never overwrites a file, and after an error it leaves none.
func writeCopy(ctx context.Context, dst FS, name string, logger *slog.Logger, fill func(*rewriter) error) error {
	if err := errors.Join(checkReserved(name), mustBeNew(dst, name)); err != nil {
		return err
	}
	w, err := newRewriter(dst, name)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: remove it unless another process is writing it", err)
	}
	if err != nil {
		return err
	}
	if err = fill(w); err == nil {
		err = w.publish(ctx, logger)
	}
	if err != nil {
		return errors.Join(err, w.discard())
	}
	_ = w.file.Close() // everything in it is durable
	return nil
}

// mustBeNew returns an error if there is a file of this name.
func mustBeNew(fsys FS, name string) error {
	file, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = file.Close()
	}
	return errors.Join(fmt.Errorf("%w: %s", fs.ErrExist, name), err)
}

// publish completes a copy, reads it back and gives it its name.
func (w *rewriter) publish(ctx context.Context, logger *slog.Logger) error {
	if _, err := w.finish(); err != nil {
		return err
	}
	r, err := newReplay(w.file, w.name)
	if err == nil {
		err = r.into(ctx, func([]webhookcfg.Change) {}, logger)
	}
	if err == nil && (r.records != w.records || r.end != w.end || r.isTorn) {
		err = fmt.Errorf("%w: %s has %d changes of the %d that were written", ErrDamaged, w.name, r.records, w.records)
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	if err := mustBeNew(w.fs, w.name); err != nil { // it may have been created meanwhile
		return err
	}
	err = w.fs.Rename(w.name+tempSuffix, w.name)
	if err == nil {
		err = w.fs.Sync()
	}
	if err == nil {
		return nil
	}
	isNamed, unknown := w.fs.SameFile(w.name, w.file)
	if isNamed {
		unknown = w.fs.Remove(w.name)
	}
	return errors.Join(err, unknown)
}
