package oplog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// Sentinel errors, to be matched with [errors.Is]. Their texts have no prefix: package
// store exports them as its own and adds the operation.
var (
	// ErrClosed is returned by every call after Close.
	ErrClosed = errors.New("log closed")
	// ErrReadOnly is wrapped by the error of every change after a failed write or sync.
	ErrReadOnly = errors.New("log read-only after a failed write")
	// ErrLocked is wrapped by the error of opening a log that is open already.
	ErrLocked = errors.New("log already open")
	// ErrDamaged is wrapped by the error of opening a log that cannot be trusted. The
	// file is left as it is.
	ErrDamaged = errors.New("log damaged")
)

// State is the state machine that the changes of a log are applied to.
type State interface {
	// ApplyAll applies durable changes in order. It is not called concurrently with
	// itself. Ids may be substrings of larger strings: clone those that are kept.
	ApplyAll(changes []webhookcfg.Change)
	// Len returns how many changes Snapshot yields.
	Len() int
	// Snapshot yields changes that lead from the empty state to the present one. It is
	// called concurrently with ApplyAll and never blocks it for long. Changes that are
	// applied meanwhile may be missing or partly visible: the log adds them afterwards.
	Snapshot() iter.Seq[webhookcfg.Change]
}

// Options are the settings of a [Log].
type Options struct {
	// Logger receives what was read, cut and compacted, and why the log became read-only.
	// If nil, nothing is logged.
	Logger *slog.Logger
	// CompactRatio is the ratio of superseded bytes to live ones in the file above which
	// a compaction starts, once at least 1 MiB is superseded. Zero means 1; with a
	// negative ratio, none starts by itself.
	CompactRatio float64

	// skipChecksums accepts any checksum. It proves that the tests of damage can fail.
	skipChecksums bool
}

// Log is an open log. Its methods are safe for concurrent use.
//
// One goroutine, the commit loop, writes the batches and applies them; a compaction has
// a goroutine of its own. Callers wait on channels only, so that they return as soon as
// their contexts end.
type Log struct {
	fs      FS
	name    string
	state   State
	options Options
	lock    File // excludes other openers as long as the log is open

	// mu guards the fields that callers and the commit loop share.
	mu      sync.Mutex
	pending *batch
	closed  bool
	failed  error // wraps ErrReadOnly

	wake    chan struct{} // holds a token while a batch is pending
	tasks   chan func()   // run by the commit loop between two batches
	stopped chan struct{} // closed when the commit loop has returned

	// The fields down to retryAt belong to the commit loop.
	file  logFile
	spare *batch // becomes pending next
	// expected is how many callers waitForBatch yields to.
	expected int
	lines    []byte              // of the batch being written, reused
	changes  []webhookcfg.Change // of the batch being written, reused
	// retryAt is the size below which no compaction starts by itself after one failed.
	retryAt int64

	// durable is the offset after the last record; everything before it is applied.
	durable atomic.Int64
	// compacting holds a token while a compaction runs, and for good after Close.
	compacting chan struct{}
	closing    context.Context
	close      context.CancelFunc
}

const (
	lockSuffix = ".lock"
	tempSuffix = ".tmp"
	// progressEvery is the interval between two progress reports of a long opening.
	progressEvery = 2 * time.Second
)

// Open opens the log name, or creates it, and applies all changes in it to state, which
// is empty. A torn tail is cut; a log that is damaged, or of a later version, is left as
// it is. The log closes fsys, also if Open returns an error.
func Open(fsys FS, name string, state State, o Options) (*Log, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Log{
		fs:         fsys,
		name:       name,
		state:      state,
		options:    o,
		pending:    newBatch(),
		spare:      newBatch(),
		wake:       make(chan struct{}, 1),
		tasks:      make(chan func()),
		stopped:    make(chan struct{}),
		compacting: make(chan struct{}, 1),
	}
	if err := l.open(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	l.closing, l.close = context.WithCancel(context.Background())
	go l.commitLoop()
	return l, nil
}

func (l *Log) open() (err error) {
	if l.lock, err = l.fs.Lock(l.name + lockSuffix); err != nil {
		return err
	}
	if l.file.file, err = l.openOrCreate(); err != nil {
		return err
	}
	if err := l.recover(); err != nil {
		return err
	}
	if err := removeTemp(l.fs, l.name); err != nil {
		return err
	}
	return l.syncNames()
}

// openOrCreate opens the file, or creates it if it is missing or empty.
func (l *Log) openOrCreate() (File, error) {
	size, file, err := openSized(l.fs, l.name)
	if err != nil || size > 0 {
		return file, err
	}
	if file != nil {
		if err := file.Close(); err != nil {
			return nil, err
		}
	}
	if err := l.mayCreate(); err != nil {
		return nil, err
	}
	w, err := newRewriter(l.fs, l.name)
	if err != nil {
		return nil, err
	}
	if _, err = w.finish(); err == nil {
		err = l.fs.Rename(l.name+tempSuffix, l.name)
	}
	if err != nil {
		return nil, errors.Join(err, w.discard())
	}
	return w.logFile.file, nil
}

// mayCreate returns an error if there was a log before: a file that went missing is not
// an empty log.
func (l *Log) mayCreate() error {
	known, err := l.lock.Size()
	if err != nil {
		return err
	}
	if known > 0 {
		return fmt.Errorf("%w: %s is missing or empty, but %s records that it existed: restore it, or remove both to start with an empty log",
			ErrDamaged, l.name, l.name+lockSuffix)
	}
	size, temp, err := openSized(l.fs, l.name+tempSuffix)
	if temp != nil {
		err = errors.Join(err, temp.Close())
	}
	if err == nil && size > headerLen {
		return fmt.Errorf("%w: %s is missing or empty, but %s has records: restore the former, or remove the latter to start with an empty log",
			ErrDamaged, l.name, l.name+tempSuffix)
	}
	return err
}

// openSized opens a file and returns its size; without one, file is nil.
func openSized(fsys FS, name string) (size int64, file File, err error) {
	file, err = fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil, nil
	}
	if err != nil {
		return 0, nil, err
	}
	if size, err = file.Size(); err != nil {
		return 0, nil, errors.Join(err, file.Close())
	}
	return size, file, nil
}

// recover reads the file and repairs its end.
func (l *Log) recover() error {
	started := time.Now()
	r, err := newReplay(l.file.file, l.name)
	if err != nil {
		return err
	}
	if l.options.skipChecksums {
		r.decode = decodeUnchecked
	}
	reported := started
	progress := func(records int, end int64) {
		if now := time.Now(); now.Sub(reported) >= progressEvery {
			reported = now
			l.options.Logger.Info("reading log", "file", l.name, "records", records, "bytes", end, "of", r.size)
		}
	}
	if err := r.into(l.state, progress); err != nil {
		return err
	}
	l.options.Logger.Info("log read", "file", l.name, "records", r.records, "bytes", r.end, "duration", time.Since(started))
	if r.isTorn {
		l.options.Logger.Warn("torn tail of the log cut: its last write was not completed",
			"file", l.name, "line", r.line(), "offset", r.end, "bytes", r.size-r.end)
	}
	l.file, err = r.repair()
	l.durable.Store(l.file.end)
	return err
}

// syncNames makes the names of the files durable and then records in the lock file that
// the log exists.
func (l *Log) syncNames() error {
	if err := l.fs.Sync(); err != nil {
		return err
	}
	known, err := l.lock.Size()
	if err != nil || known > 0 {
		return err
	}
	note := fmt.Sprintf("This file prevents %s from being opened twice, and from being treated as new if it goes missing.\n", l.name)
	if _, err := l.lock.WriteAt([]byte(note), 0); err != nil {
		return err
	}
	return l.lock.Sync()
}

// Close writes the pending changes, seals the file and releases the lock. If the log is
// read-only, the error wraps [ErrReadOnly] and the cause.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	l.mu.Unlock()
	l.close()
	l.compacting <- struct{}{} // waits for the end of a compaction
	l.signal()
	<-l.stopped
	err := l.failure()
	if err == nil {
		err = l.file.seal()
	}
	return errors.Join(err, l.release())
}

// fail makes the log read-only, unless it is already, and returns the first cause.
func (l *Log) fail(cause error) error {
	l.mu.Lock()
	isFirst := l.failed == nil
	if isFirst {
		l.failed = fmt.Errorf("%w: %w", ErrReadOnly, cause)
	}
	err := l.failed
	l.mu.Unlock()
	if isFirst {
		l.options.Logger.Error("log is read-only until it is opened again", "file", l.name, "error", cause)
	}
	return err
}

// failure returns why the log is read-only, nil if it is not.
func (l *Log) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.failed
}

// release closes all files, the lock last, and then the directory.
func (l *Log) release() error {
	var err error
	if l.file.file != nil {
		err = l.file.file.Close()
	}
	if l.lock != nil {
		err = errors.Join(err, l.lock.Close())
	}
	return errors.Join(err, l.fs.Close())
}

// damaged is the error for a log that cannot be trusted.
func damaged(name string, line int, offset int64, reason string) error {
	return fmt.Errorf("%w: %s, line %d, at byte %d: %s; the file was left as it is: restore a backup, or truncate a copy there to give up everything that follows",
		ErrDamaged, name, line, offset, reason)
}
