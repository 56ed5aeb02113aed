package oplog

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The wait before a repair after a failure: minBackoff, then twice the last one, up to
// maxBackoff.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = time.Second
)

// Err returns why changes are refused now, nil if they are not. The error wraps
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

// recovered records that changes are accepted again after a failure.
func (l *Log) recovered() {
	l.backoff, l.retryDue = 0, nil
	l.mu.Lock()
	l.failed, l.blocked = nil, false
	l.mu.Unlock()
	l.options.Logger.Info("log can be written again", "file", l.name)
}

// retry repairs the log and then checks that the disk has room: a log without callers
// recovers too, so that a check of its health may decide whether it gets any.
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

// repair removes what a failed write or an interrupted compaction left. It does not repeat
// a sync to make records durable that one has failed for: after that the system may treat
// them as clean. They were not acknowledged, and are removed.
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

// heal replaces a file that is not as it was written by a new one, from the state, which
// has all that was acknowledged. Nothing is appended meanwhile.
func (l *Log) heal(cause error) error {
	l.mu.Lock()
	c := l.compaction
	l.mu.Unlock()
	c.end(cause) // it reads the file, and its own new file has the same name
	w, err := replaceTemp(l.fs, l.name)
	if err != nil {
		return err
	}
	w.isUrgent = true
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
	l.options.Logger.Warn("log written anew, with all changes, because its file was not as it was written", "file", l.name, "bytes", l.file.end)
	return nil
}

// settleName makes the file that the name of the log leads to its file, durably, and
// returns the other one, if there were two. Both have the same records.
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

// makeRoom stops the compaction that may take up the disk space for a batch, and reports
// whether there was one. If it has just ended by itself, there is room too.
func (l *Log) makeRoom(b *batch) bool {
	c := b.compaction
	c.end(errNoRoom)
	b.compaction = nil
	return c != nil
}

var errNoRoom = errors.New("stopped, because changes needed its disk space")
