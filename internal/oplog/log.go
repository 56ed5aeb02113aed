package oplog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// Sentinel errors for [errors.Is]. Their texts have no prefix, because package store exports
// them as its own and adds the operation.
var (
	// ErrClosed is what every call returns after Close.
	ErrClosed = errors.New("log closed")
	// ErrReadOnly is wrapped by the errors of changes that couldn't be written. After a
	// failed sync, all changes get it until the log has repaired its file.
	ErrReadOnly = errors.New("log cannot be written")
	// ErrLocked is wrapped by the error of opening a log that is already open.
	ErrLocked = errors.New("log already open")
	// ErrDamaged is wrapped by the error of opening a log that can't be trusted. The log
	// leaves the file as it is.
	ErrDamaged = errors.New("log damaged")
)

// State is your state machine. The log applies its changes to it.
type State interface {
	// ApplyAll applies durable changes in order. The log never calls it concurrently with
	// itself. Ids can be substrings of larger strings, so clone the ones that you keep.
	ApplyAll(changes []webhookcfg.Change)
	// Live returns how many changes Snapshot yields, and the total length of their names and
	// URLs in bytes.
	Live() (changes int, bytes int64)
	// Snapshot yields changes that lead from the empty state to the present one. The log
	// calls it concurrently with ApplyAll, so it mustn't block that for long. It can miss
	// changes that are applied meanwhile, or yield parts of them: the log adds them
	// afterwards.
	Snapshot() iter.Seq[webhookcfg.Change]
}

// Options are the settings of a [Log].
type Options struct {
	// Logger gets the creation of the file, the progress of reading, cuts, compactions, failures
	// and recoveries. If it's nil, nothing is logged.
	Logger *slog.Logger
	// CompactManually means that compactions don't start by themselves. Otherwise one starts once
	// more bytes are superseded than live, and at least 1 MiB.
	CompactManually bool

	// skipChecksums makes the log accept any checksum. Tests use it to prove that the tests
	// of damage can fail.
	skipChecksums bool
	// yield is runtime.Gosched, except in tests that count its calls.
	yield func()
}

// Log is an open log. You can call its methods concurrently.
//
// One goroutine, the commit loop, writes the batches and applies them. A compaction has its
// own goroutine. Callers only wait on channels, so they can return as soon as their contexts
// end.
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
	failed  error // why changes are refused, wraps ErrReadOnly
	// blocked reports that all changes are refused until a repair. Otherwise each one is
	// tried.
	blocked bool
	// writing reports that a batch has been cut and isn't done.
	writing bool
	// compaction is running, if it isn't nil.
	compaction *compaction
	stats      Stats

	wake    chan struct{} // holds a token while a batch is pending
	tasks   chan func()   // run by the commit loop between two batches
	stopped chan struct{} // closed when the commit loop has returned

	// The fields down to density belong to the commit loop.
	file logFile
	// rival is set if a compaction was interrupted while it replaced the file. It's the other
	// file, which may turn out to have the name of the log after a crash.
	rival logFile
	// checkedAt is when the file and its name were last found to be as they should.
	checkedAt time.Time
	// backoff is how long the next repair waits after the last failure, and retryDue fires
	// when it can start. Both are unset while all is well.
	backoff  time.Duration
	retryDue <-chan time.Time
	spare    *batch // becomes pending next
	// expected is how many callers waitForBatch yields to, and lastWrite how long the last
	// write and its sync took.
	expected  int
	lastWrite time.Duration
	lines     []byte              // of the batch being written, reused
	changes   []webhookcfg.Change // of the batch being written, reused
	// Compactions don't start by themselves while the file is shorter than compactAt. density
	// is the last compaction's actual length divided by the estimated one.
	compactAt int64
	density   float64

	// durable is the offset after the last record. Everything before it is applied.
	durable atomic.Int64
	// compacting holds a token while a compaction or a backup runs. After Close it holds one
	// for good.
	compacting chan struct{}
	closing    context.Context
	close      context.CancelFunc
}

const (
	lockSuffix = ".lock"
	tempSuffix = ".tmp"
)

// Open opens the log name, or creates it, and applies all its changes to state, which must be
// empty. It cuts a torn tail. It doesn't change a log that is damaged or has a later version.
// The log closes fsys at the end, or right away if Open returns an error.
func Open(fsys FS, name string, state State, o Options) (*Log, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.yield == nil {
		o.yield = runtime.Gosched
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
		density:    1,
	}
	if err := l.open(); err != nil {
		return nil, errors.Join(err, l.release())
	}
	l.closing, l.close = context.WithCancel(context.Background())
	go l.commitLoop()
	return l, nil
}

func (l *Log) open() (err error) {
	if err := checkReserved(l.name); err != nil {
		return err
	}
	if l.lock, err = openLock(l.fs, l.name); err != nil {
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

// checkReserved refuses the names of files that another log creates and removes next to
// itself. It ignores case, because some file systems do.
func checkReserved(name string) error {
	for _, suffix := range []string{lockSuffix, tempSuffix} {
		if strings.HasSuffix(strings.ToLower(name), suffix) {
			return fmt.Errorf("the name %s ends in %s, which is reserved for a file next to a log: choose another name", name, suffix)
		}
	}
	return nil
}

// openLock opens the lock file of the log name, or creates it. Nobody ever removes or renames
// that file.
func openLock(fsys FS, name string) (File, error) {
	name += lockSuffix
	file, err := fsys.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = fsys.Create(name)
	}
	if errors.Is(err, fs.ErrExist) { // another process has just created it
		file, err = fsys.Open(name)
	}
	return file, err
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
	w, err := replaceTemp(l.fs, l.name)
	if err != nil {
		return nil, err
	}
	if _, err = w.finish(); err == nil {
		err = l.fs.Rename(l.name+tempSuffix, l.name)
	}
	if err != nil {
		return nil, errors.Join(err, w.discard())
	}
	l.options.Logger.Info("log created: if there was one before, stop, and restore it or mount its directory", "file", l.name)
	return w.logFile.file, nil
}

// mayCreate returns an error if there was a log before. If its file went missing, don't treat
// it as an empty log.
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
		return fmt.Errorf("%w: %s is missing or empty, but %s has records: restore %[2]s, or remove %[3]s to start with an empty log",
			ErrDamaged, l.name, l.name+tempSuffix)
	}
	return err
}

// openSized opens a file and returns its size. If there's no such file, it returns nil.
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
	r, err := newReplay(l.file.file, l.name)
	if err != nil {
		return err
	}
	if l.options.skipChecksums {
		r.decode = decodeUnchecked
	}
	if err := r.into(context.Background(), l.state.ApplyAll, l.options.Logger); err != nil {
		return err
	}
	if r.isTorn {
		l.options.Logger.Warn("torn tail of the log cut: its last write was not completed",
			"file", l.name, "line", r.line(), "offset", r.end, "bytes", r.size-r.end)
	}
	l.file, err = r.repair()
	l.durable.Store(l.file.end)
	l.measure(func(*Stats) {})
	return err
}

// syncNames makes the names of the files durable. Then it records in the lock file that the
// log exists.
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

// Close writes the pending changes, seals the file and releases the lock. If it can't repair
// or seal the file, or if another program overwrote it meanwhile, the error wraps
// [ErrReadOnly] and the cause.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return ErrClosed
	}
	l.closed = true
	l.mu.Unlock()
	l.close()
	l.compacting <- struct{}{} // wait until a compaction has ended
	l.signal()
	<-l.stopped
	err := l.repair()
	if err == nil {
		err = l.file.seal()
	}
	if err == nil {
		err = l.file.readBack() // also catches what another program did meanwhile
	}
	if err != nil {
		err = l.fail(err)
	}
	return errors.Join(err, l.release())
}

// release closes all files, the lock last, and then the directory.
func (l *Log) release() error {
	var err error
	for _, f := range []logFile{l.file, l.rival} {
		if f.file != nil {
			err = errors.Join(err, f.file.Close())
		}
	}
	if l.lock != nil {
		err = errors.Join(err, l.lock.Close())
	}
	return errors.Join(err, l.fs.Close())
}

// damaged returns the error for a log that can't be trusted.
func damaged(name string, line int, offset int64, reason string) error {
	return fmt.Errorf("%w: %s, line %d, at byte %d: %s; the file was left as it is: restore a backup, or copy the intact changes to a new file with store.SalvageFile",
		ErrDamaged, name, line, offset, reason)
}
