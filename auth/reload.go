package auth

import (
	"context"
	"time"
)

// Reload reads the file again, whether or not it looks changed. If it cannot be
// used, what was read before stays in use, and the error says why. From its return
// on, no secret that the file has lost signs anybody in.
func (f *File) Reload(ctx context.Context) error {
	f.reading.Lock()
	defer f.reading.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.reload(ctx)
}

// Close ends the polling and returns when it has ended. The File goes on verifying
// with what was read last. Close may be called more than once; its error is nil.
func (f *File) Close() error {
	f.stop()
	<-f.stopped
	return nil
}

func (f *File) start() {
	ctx, cancel := context.WithCancel(context.Background())
	f.stop = cancel
	if f.options.Poll == 0 {
		close(f.stopped)
		return
	}
	go f.poll(ctx)
}

func (f *File) poll(ctx context.Context) {
	defer close(f.stopped)
	ticker := time.NewTicker(f.options.Poll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			f.reloadIfChanged(ctx)
		}
	}
}

func (f *File) reloadIfChanged(ctx context.Context) {
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.seen.mayDiffer(f.path) {
		_ = f.reload(ctx) // has reported it
	}
}

// reload reads the file and reports the outcome, unless it is the one of before. The
// caller holds f.reading.
func (f *File) reload(ctx context.Context) error {
	changed, err := f.read()
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	if changed || fault != f.fault {
		f.fault = fault
		f.report(ctx, err)
	}
	return err
}

func (f *File) report(ctx context.Context, err error) {
	if err != nil {
		f.options.Logger.ErrorContext(ctx, "credential file cannot be used, the old contents stay in use", "error", err)
	} else {
		f.options.Logger.InfoContext(ctx, "credential file in use", "path", f.path, "clients", len(f.table.Load().clients))
	}
	if f.options.OnReload != nil {
		f.options.OnReload(err)
	}
}
