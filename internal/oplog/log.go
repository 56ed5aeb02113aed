package oplog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"

	"example.com/go-webhookcfg/webhookcfg"
)

// Sentinel errors, to be found with [errors.Is]. Package store hands them on as its own.
var (
	// ErrClosed is the answer to every call after Close.
	ErrClosed = errors.New("store: closed")
	// ErrReadOnly is the answer to every change after a write or a sync failed.
	ErrReadOnly = errors.New("store: read-only since a write failed")
	// ErrLocked says that somebody else has the log open.
	ErrLocked = errors.New("store: already open")
	// ErrDamaged says that a log cannot be trusted, and was left as it is.
	ErrDamaged = errors.New("store: damaged")
)

// State is the machine that the changes of a log lead through its states.
type State interface {
	// Apply applies changes in their order. They are durable. It is called by one
	// goroutine at a time. Ids may be parts of larger strings: to keep one is to copy it.
	Apply(changes []webhookcfg.Change)
	// Len returns how many changes Snapshot yields.
	Len() int
	// Snapshot yields changes that lead from the empty state to the present one.
	// It is called beside Apply and never holds it up for long. Changes that are
	// applied meanwhile may be left out or show in part: they come again after it.
	Snapshot() iter.Seq[webhookcfg.Change]
}

// Options are the settings of a [Log].
type Options struct {
	// Logger says what was read, cut or compacted; nil is silent.
	Logger *slog.Logger
	// CompactRatio is how many bytes of the file may be dead for each that is
	// live; zero means 1, and a negative ratio leaves compaction to the caller.
	CompactRatio float64

	// unchecked takes every checksum for right. Tests prove by it that they would
	// notice.
	unchecked bool
}

// Log is an open log. Its methods are safe for concurrent use.
//
// One goroutine writes the groups, another one may apply them, and a compaction has one
// of its own. Callers wait for channels alone, so that they are answered as soon as
// their contexts end.
type Log struct {
	fs      FS
	name    string
	backlog *backlog
	options Options
	lock    File // keeps others out as long as the log is open

	// mu guards what callers and the writing goroutine share.
	mu      sync.Mutex
	pending *group
	closed  bool
	failed  error // wraps ErrReadOnly

	wake    chan struct{} // holds a token while a group is pending
	between chan func()   // what run has to do between two groups
	stopped chan struct{} // closed when run has returned

	// What follows belongs to run.
	segment segment
	spare   *group // to be pending next
	// expected is how many callers gather waits for a little.
	expected int
	lines    []byte
	// retryAt is the size below which no compaction begins by itself after one failed.
	retryAt int64

	// durable is the end of the segment; the backlog has all before it.
	durable atomic.Int64
	// turn holds a token while a compaction runs, and for good after Close.
	turn    chan struct{}
	closing context.Context
	close   context.CancelFunc
}

// Close writes what is pending, ends the log and lets the lock go. It returns
// what made the log read-only, if something did.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	l.mu.Unlock()
	l.close()
	l.turn <- struct{}{} // once no compaction runs any more
	l.nudge()
	<-l.stopped
	l.backlog.beside.Wait()
	err := l.failure()
	if err == nil {
		err = l.segment.finish()
	}
	return errors.Join(err, l.release())
}

// fail makes the log read-only, because of the first cause that it is given.
func (l *Log) fail(cause error) error {
	l.mu.Lock()
	isFirst := l.failed == nil
	if isFirst {
		l.failed = fmt.Errorf("%w: %w", ErrReadOnly, cause)
	}
	err := l.failed
	l.mu.Unlock()
	if isFirst {
		l.options.Logger.Error("log is read-only from now on", "file", l.name, "error", cause)
	}
	return err
}

// failure returns what made the log read-only, nil if nothing did.
func (l *Log) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}
