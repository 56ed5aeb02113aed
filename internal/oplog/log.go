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

// State is the machine that the changes of a log lead through its states.
type State interface {
	// ApplyAll applies changes in their order. They are durable. It is called by one
	// goroutine at a time. Ids may be parts of larger strings: to keep one is to copy it.
	ApplyAll(changes []webhookcfg.Change)
	// Len returns how many changes Snapshot yields.
	Len() int
	// Snapshot yields changes that lead from the empty state to the present one.
	// It is called beside ApplyAll and never holds it up for long. Changes that are
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

	// skipChecksums takes every checksum for right. Tests prove by it that they would
	// notice.
	skipChecksums bool
}

// Log is an open log. Its methods are safe for concurrent use.
//
// One goroutine writes the groups and applies them, and a compaction has one of its
// own. Callers wait for channels alone, so that they are answered as soon as their
// contexts end.
type Log struct {
	fs      FS
	name    string
	state   State
	options Options
	lock    File // keeps others out as long as the log is open

	// mu guards what callers and the writing goroutine share.
	mu      sync.Mutex
	pending *batch
	closed  bool
	failed  error // wraps ErrReadOnly

	wake    chan struct{} // holds a token while a group is pending
	tasks   chan func()   // what run has to do between two groups
	stopped chan struct{} // closed when run has returned

	// What follows belongs to run.
	file  logFile
	spare *batch // to be pending next
	// expected is how many callers gather waits for a little.
	expected int
	lines    []byte
	changes  []webhookcfg.Change
	// retryAt is the size below which no compaction begins by itself after one failed.
	retryAt int64

	// durable is the end of the segment; the state has all before it.
	durable atomic.Int64
	// turn holds a token while a compaction runs, and for good after Close.
	compacting chan struct{}
	closing    context.Context
	close      context.CancelFunc
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
	l.compacting <- struct{}{} // once no compaction runs any more
	l.signal()
	<-l.stopped
	err := l.failure()
	if err == nil {
		err = l.file.seal()
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

const (
	lockSuffix = ".lock"
	tempSuffix = ".tmp"
	// progressEvery is how often a long opening says how far it is.
	progressEvery = 2 * time.Second
)

// Open opens the log name, or creates it, and leads state, which is empty,
// through all changes in it. A log that ends in the middle of a write is mended; one
// that is damaged, or of a later version, is left as it is. The log closes fsys.
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

// openOrCreate opens the file, or creates it where there is none or an empty one.
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

// mayCreate returns an error where something says that there was a log before: a
// file that went missing is not an empty log.
func (l *Log) mayCreate() error {
	known, err := l.lock.Size()
	if err != nil {
		return err
	}
	if known > 0 {
		return fmt.Errorf("%w: %s is missing or empty, but %s says that there was a log: restore it, or remove both to begin with an empty one",
			ErrDamaged, l.name, l.name+lockSuffix)
	}
	size, temp, err := openSized(l.fs, l.name+tempSuffix)
	if temp != nil {
		err = errors.Join(err, temp.Close())
	}
	if err == nil && size > headerLen {
		return fmt.Errorf("%w: %s is missing or empty, but %s has records: restore the one, or remove the other to begin with an empty log",
			ErrDamaged, l.name, l.name+tempSuffix)
	}
	return err
}

// openSized opens a file, if there is one, and returns its size.
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

// recover reads the file, mends its end and says so.
func (l *Log) recover() error {
	began := time.Now()
	r, err := newReplay(l.file.file, l.name)
	if err != nil {
		return err
	}
	r.decoder.skipChecksums = l.options.skipChecksums
	said := began
	progress := func(records int, end int64) {
		if now := time.Now(); now.Sub(said) >= progressEvery {
			said = now
			l.options.Logger.Info("reading log", "file", l.name, "records", records, "bytes", end, "of", r.size)
		}
	}
	if err := r.into(l.state, progress); err != nil {
		return err
	}
	l.options.Logger.Info("log read", "file", l.name, "records", r.records, "bytes", r.end, "duration", time.Since(began))
	if r.isTorn {
		l.options.Logger.Warn("the last write to the log had not ended; what there was of it is cut",
			"file", l.name, "line", r.line(), "offset", r.end, "bytes", r.size-r.end)
	}
	l.file, err = r.repair()
	l.durable.Store(l.file.end)
	return err
}

// settleNames makes the names of the files durable and then notes in the lock
// file that there is a log.
func (l *Log) syncNames() error {
	if err := l.fs.Sync(); err != nil {
		return err
	}
	known, err := l.lock.Size()
	if err != nil || known > 0 {
		return err
	}
	note := fmt.Sprintf("This file keeps %s from being opened twice, and from being taken for new when it goes missing.\n", l.name)
	if _, err := l.lock.WriteAt([]byte(note), 0); err != nil {
		return err
	}
	return l.lock.Sync()
}

// release closes all that is open. The lock comes last but the folder.
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
	return fmt.Errorf("%w: %s, line %d, at byte %d: %s; the file was left as it is: restore a backup, or cut a copy there to give up all that follows",
		ErrDamaged, name, line, offset, reason)
}
