package oplog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"example.com/go-webhookcfg/webhookcfg"
)

// Backup writes a copy of the log to the new log name in dst. You can call it while changes
// are appended, and also if the log can't be written. The copy is the log between two batches
// during the call. If you call Close meanwhile, Backup returns [ErrClosed].
func (l *Log) Backup(ctx context.Context, dst FS, name string) error {
	return l.withFile(ctx, func(ctx context.Context) error {
		return writeCopy(ctx, dst, name, l.options.Logger, func(w *rewriter) error {
			file, from, err := l.position(ctx)
			if err != nil {
				return err
			}
			w.isBusy = l.traffic()
			if err := w.snapshot(ctx, l.state.Snapshot()); err != nil {
				return err
			}
			// The snapshot can contain parts of a batch that is being applied.
			_, to, err := l.position(ctx)
			if err == nil {
				_, err = w.follow(ctx, file, from, to, to)
			}
			return err
		})
	})
}

// position returns the file and the offset after its last record, between two batches, when
// all records are applied. Put a token into compacting before you call it, so that the file
// can't be replaced.
func (l *Log) position(ctx context.Context) (file File, end int64, err error) {
	err = l.betweenBatches(ctx, func() error {
		if l.rival.file != nil { // a repair finds out which of the two files it is
			return l.failed
		}
		file, end = l.file.file, l.file.end
		return nil
	})
	return file, end, err
}

// writeCopy creates a complete log. The copy gets its name only after it was read back.
// writeCopy never overwrites a file, and doesn't leave one after an error.
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

// mustBeNew returns an error if the name is taken.
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
		err = fmt.Errorf("%w: the new file %s does not read back as written, with %d of %d changes: check the disk, then try again", ErrDamaged, w.name, r.records, w.records)
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
