// Package faultfs is a file system in memory that fails where a test wants it to. It
// implements [oplog.FS], for one directory.
//
// It distinguishes written from durable, both for the content of files and for the names
// in the directory, each with a sync of its own. [FS.Crash] returns the file system after
// a power failure, [FS.Restart] the one after the process was killed.
package faultfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"slices"
	"sync"

	"example.com/go-webhookcfg/internal/oplog"
)

// Errors of failed calls; see [Outcome].
var (
	ErrInjected = errors.New("faultfs: injected failure")
	ErrStopped  = errors.New("faultfs: file system stopped")
)

// Op is a kind of call.
type Op string

// The calls of [oplog.FS] and [oplog.File]. Opening and creating are two calls each, of
// which the second is OpLock. OpSyncDir is the Sync of the directory.
const (
	OpOpen     Op = "open"
	OpCreate   Op = "create"
	OpLock     Op = "lock"
	OpSameFile Op = "samefile"
	OpRename   Op = "rename"
	OpRemove   Op = "remove"
	OpSyncDir  Op = "syncdir"
	OpRead     Op = "read"
	OpWrite    Op = "write"
	OpTruncate Op = "truncate"
	OpSync     Op = "sync"
	OpSize     Op = "size"
	OpClose    Op = "close"
)

// Call is one call of the file system.
type Call struct {
	// N is the number of the call; the first one is 1.
	N    int
	Op   Op
	Name string
}

// Outcome is the outcome of a call; the zero Outcome is Succeed.
type Outcome struct {
	kind string
	err  error
}

// The outcomes of calls.
var (
	// Succeed makes the call.
	Succeed = Outcome{}
	// Fail returns ErrInjected without any effect, except that a failed sync marks all
	// pending writes as clean: later syncs leave them out.
	Fail = Outcome{kind: "fail"}
	// FailHalfway writes the first half of a write and returns ErrInjected; for other
	// calls, it is Fail.
	FailHalfway = Outcome{kind: "fail halfway"}
	// FailAfter makes the call and returns ErrInjected.
	FailAfter = Outcome{kind: "fail after"}
	// Pretend returns as if the call had succeeded, without any effect. A file that it
	// opens is not locked, and any name leads to any file.
	Pretend = Outcome{kind: "pretend"}
	// Stop stops the file system: this call and all later ones return ErrStopped.
	Stop = Outcome{kind: "stop"}
)

// With returns the outcome of a call that fails with err, too.
func (o Outcome) With(err error) Outcome { return Outcome{o.kind, err} }

// String describes the outcome.
func (o Outcome) String() string {
	if o.err != nil {
		return fmt.Sprintf("%s (%v)", o.kind, o.err)
	}
	return o.kind
}

func (o Outcome) failure() error {
	if o.err != nil {
		return fmt.Errorf("%w: %w", ErrInjected, o.err)
	}
	return ErrInjected
}

// FS is a directory in memory. It is safe for concurrent use.
type FS struct {
	mu     sync.Mutex
	decide func(Call) Outcome
	calls  int
	counts map[Op]int

	stopped bool
	// open counts the open files of an inode, more than one only without locks.
	open map[*inode]int
	// capacity is the size of the disk in bytes, 0 if it is unlimited, and full the error
	// of a write that does not fit.
	capacity int64
	full     error
	// names is the directory as it looks, durable as it is on disk, and pending the
	// changes between the two.
	names, durable map[string]*inode
	pending        []map[string]*inode
}

// New returns an empty directory.
func New() *FS {
	return &FS{
		counts:  map[Op]int{},
		open:    map[*inode]int{},
		names:   map[string]*inode{},
		durable: map[string]*inode{},
	}
}

// Decide sets the function that decides the outcome of every later call, before the call
// is made; with nil, all succeed. It may be called concurrently, and may block.
func (f *FS) Decide(decide func(Call) Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decide = decide
}

// Calls returns the number of calls so far.
func (f *FS) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Count returns the number of calls of one kind so far.
func (f *FS) Count(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[op]
}

// call makes one call. Effect makes it succeed; failing, unless nil, has the effects of a
// call that fails. Both run with the lock held.
func (f *FS) call(op Op, name string, effect func() error, failing func(Outcome)) error {
	outcome := f.outcome(op, name)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = f.stopped || outcome == Stop
	switch {
	case f.stopped:
		return ErrStopped
	case outcome == Pretend:
		return nil
	case outcome.kind == Fail.kind || outcome.kind == FailHalfway.kind:
		if failing != nil {
			failing(outcome)
		}
		return outcome.failure()
	}
	if err := effect(); err != nil {
		return fmt.Errorf("%s %s: %w", op, name, err)
	}
	if outcome.kind == FailAfter.kind {
		return outcome.failure()
	}
	return nil
}

func (f *FS) outcome(op Op, name string) Outcome {
	f.mu.Lock()
	f.calls++
	f.counts[op]++
	call, decide := Call{N: f.calls, Op: op, Name: name}, f.decide
	f.mu.Unlock()
	if decide == nil {
		return Succeed
	}
	return decide(call)
}

// Open implements [oplog.FS].
func (f *FS) Open(name string) (oplog.File, error) {
	return f.openFile(OpOpen, name, func() error {
		if f.names[name] == nil {
			return fs.ErrNotExist
		}
		return nil
	})
}

// Create implements [oplog.FS].
func (f *FS) Create(name string) (oplog.File, error) {
	return f.openFile(OpCreate, name, func() error {
		if f.names[name] != nil {
			return fs.ErrExist
		}
		f.rename(map[string]*inode{name: {}})
		return nil
	})
}

// openFile opens a file, which exists after a nil error of prepare, and locks it.
func (f *FS) openFile(op Op, name string, prepare func() error) (oplog.File, error) {
	opened := &file{fs: f}
	err := f.call(op, name, func() error {
		err := prepare()
		opened.inode = f.names[name]
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	err = f.call(OpLock, name, func() error {
		if f.open[opened.inode] > 0 {
			return oplog.ErrLocked
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[opened.inode]++
	return opened, nil
}

// SameFile implements [oplog.FS].
func (f *FS) SameFile(name string, opened oplog.File) (isSame bool, err error) {
	isSame = true // also if the call only pretends
	err = f.call(OpSameFile, name, func() error {
		isSame = f.names[name] == opened.(*file).inode
		return nil
	}, nil)
	return isSame && err == nil, err
}

// Rename implements [oplog.FS].
func (f *FS) Rename(from, to string) error {
	return f.call(OpRename, from, func() error {
		if f.names[from] == nil {
			return fs.ErrNotExist
		}
		f.rename(map[string]*inode{from: nil, to: f.names[from]})
		return nil
	}, nil)
}

// Remove implements [oplog.FS].
func (f *FS) Remove(name string) error {
	return f.call(OpRemove, name, func() error {
		if f.names[name] == nil {
			return fs.ErrNotExist
		}
		f.rename(map[string]*inode{name: nil})
		return nil
	}, nil)
}

// Sync implements [oplog.FS].
func (f *FS) Sync() error {
	return f.call(OpSyncDir, ".", func() error {
		f.durable, f.pending = maps.Clone(f.names), nil
		return nil
	}, nil)
}

// Close implements [oplog.FS]. It does nothing.
func (f *FS) Close() error { return nil }

// rename changes names atomically; nil removes one.
func (f *FS) rename(change map[string]*inode) {
	f.pending = append(f.pending, change)
	apply(f.names, change)
	for name, node := range change {
		if node != nil {
			node.name = name
		}
	}
}

func apply(names, change map[string]*inode) {
	for name, node := range change {
		if node == nil {
			delete(names, name)
		} else {
			names[name] = node
		}
	}
}

// ReadFile returns the content of a file, nil if there is none. It does not count as a
// call.
func (f *FS) ReadFile(name string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names[name] == nil {
		return nil
	}
	return append([]byte{}, f.names[name].content...)
}

// Lose zeroes the bytes between two offsets of a file on disk, but not as the file looks.
// It does not count as a call.
func (f *FS) Lose(name string, from, to int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.names[name].durable[from:to])
}

// WriteFile creates or replaces a durable file. It does not count as a call.
func (f *FS) WriteFile(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := newInode(content)
	node.name = name
	f.names[name], f.durable[name] = node, node
}

// Overwrite gives a file another content, durably. It does not count as a call.
func (f *FS) Overwrite(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[name].overwrite(content)
}

// Link gives a file another name, which is durable at once. It does not count as a call.
func (f *FS) Link(from, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[to], f.durable[to] = f.names[from], f.names[from]
}

// Limit sets the size of the disk in bytes. A write that does not fit writes what fits
// and returns full, for example ENOSPC. Zero means no limit. A file takes the sectors that
// were written, not the holes between them, until it has no name and is closed.
func (f *FS) Limit(capacity int64, full error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capacity, f.full = capacity, full
}

// Used returns the size of all files, as [FS.Limit] counts it.
func (f *FS) Used() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used()
}

// Free implements [oplog.FS]. It does not count as a call.
func (f *FS) Free() (int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.capacity == 0 {
		return math.MaxInt64, nil
	}
	return f.capacity - f.used(), nil
}

func (f *FS) used() (bytes int64) {
	files := map[*inode]bool{}
	for _, node := range f.names {
		files[node] = true
	}
	for node := range f.open {
		files[node] = true
	}
	for node := range files {
		bytes += node.used()
	}
	return bytes
}

// Names returns the names in the directory, in no order.
func (f *FS) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.names))
}
