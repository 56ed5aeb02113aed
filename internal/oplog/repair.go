package oplog

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// After a failure, the log waits minBackoff before it tries a repair, then twice as long each
// time, up to maxBackoff.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
)

// Err returns why changes are refused now, or nil if they aren't. The error wraps
// [ErrReadOnly] and the cause, or is [ErrClosed].
func (l *Log) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return ErrClosed
	}
	return l.failed
}

// isBlocked reports that no change can be written before a repair.
func (l *Log) isBlocked() bool { return l.file.isSuspect || l.rival.file != nil }

// fail records why changes are refused and returns it as their error.
func (l *Log) fail(cause error) error {
	l.backoff = min(max(2*l.backoff, minBackoff), maxBackoff)
	l.retryDue = time.After(l.backoff)
	l.mu.Lock()
	isFirst := l.failed == nil
	l.failed = fmt.Errorf("%w: %w", ErrReadOnly, cause)
	l.blocked = l.isBlocked()
	err := l.failed
	l.mu.Unlock()
	if isFirst {
		l.options.Logger.Error("log cannot be written", "file", l.name, "error", cause)
	}
	return err
}

// recovered records that the log accepts changes again after a failure.
func (l *Log) recovered() {
	l.backoff, l.retryDue = 0, nil
	l.mu.Lock()
	l.failed, l.blocked = nil, false
	l.mu.Unlock()
	l.options.Logger.Info("log can be written again", "file", l.name)
}

// retry repairs the log and then checks that the disk has room. It doesn't wait for a change,
// so that a log recovers without callers. A health check can then decide whether the service
// gets any.
func (l *Log) retry() {
	err := l.repair()
	if err == nil {
		err = l.file.probe()
	}
	if err != nil {
		_ = l.fail(err)
		return
	}
	l.recovered()
}

// repair removes anything that a failed write or an interrupted compaction left. If a sync
// failed, repair doesn't sync the same records again, because the system may now treat them
// as clean. They weren't acknowledged, so it removes them.
func (l *Log) repair() error {
	loser, err := l.settleName()
	if err != nil {
		return err
	}
	if loser.file != nil {
		_ = loser.file.Close() // its records are in the other file
	}
	switch err := l.file.readBack(); {
	case errors.Is(err, errOverwritten):
		return l.heal(err)
	case err != nil:
		return err
	case l.file.isSuspect:
		return l.file.restore()
	}
	return nil
}

// heal writes a new file if another program changed the file. It writes it from the state,
// which has all acknowledged changes. Nothing is appended meanwhile.
func (l *Log) heal(cause error) error {
	l.mu.Lock()
	c := l.compaction
	l.mu.Unlock()
	c.end(cause) // it reads the damaged file, and its new file has the same name as ours
	w, err := replaceTemp(l.fs, l.name)
	if err != nil {
		return err
	}
	if err = w.snapshot(context.Background(), l.state.Snapshot()); err == nil {
		var loser logFile
		loser, err = l.install(w)
		if loser.file != nil {
			_ = loser.file.Close() // its records are in the other file, or in the state
		}
	}
	if err != nil {
		return errors.Join(cause, err, w.discard())
	}
	l.options.Logger.Warn("log rewritten with all changes, because another program changed its file", "file", l.name, "bytes", l.file.end)
	return nil
}

// settleName finds out which file the name of the log leads to, makes that durable and goes
// on with that file. If there were two, it returns the other one. Both have the same records.
func (l *Log) settleName() (loser logFile, err error) {
	if l.rival.file != nil {
		isNamed, err := l.fs.SameFile(l.name, l.rival.file)
		if err != nil {
			return loser, err
		}
		if isNamed {
			l.file, l.rival = l.rival, l.file
			l.durable.Store(l.file.end)
		}
	}
	if err := l.checkName(); err != nil || l.rival.file == nil {
		return loser, err
	}
	if err := l.fs.Sync(); err != nil {
		return loser, err
	}
	loser, l.rival = l.rival, logFile{}
	return loser, nil
}

// makeRoom stops the compaction that may be using the disk space for a batch, and reports
// whether there was one. If the compaction has just ended by itself, there's room too.
func (l *Log) makeRoom(b *batch) bool {
	c := b.compaction
	c.end(errNoRoom)
	b.compaction = nil
	return c != nil
}

var errNoRoom = errors.New("stopped, because changes needed its disk space")
