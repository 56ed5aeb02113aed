// Package faultfs is a file system in memory that fails where your test wants it to. It
// implements [oplog.FS], for one directory. Call [FS.Decide] to choose the calls that fail.
//
// A write isn't durable before the file is synced, and a change of names isn't before the
// directory is. [FS.Crash] shows you what a power failure leaves, and [FS.Restart] what the
// next process finds after a kill.
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

// Failed calls return these errors, see [Outcome].
var (
	ErrInjected = errors.New("faultfs: injected failure")
	ErrStopped  = errors.New("faultfs: file system stopped")
)

// Op is a kind of call.
type Op string

// The calls of [oplog.FS] and [oplog.File]. Opening or creating a file makes two calls, and
// the second one is OpLock. OpSyncDir syncs the directory.
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

// Call is a call of the file system.
type Call struct {
	// N is the number of the call, starting at 1.
	N    int
	Op   Op
	Name string
}

// Outcome is what happens to a call. The zero Outcome is Succeed.
type Outcome struct {
	kind string
	err  error
}

// The outcomes that you can choose.
var (
	// Succeed makes the call.
	Succeed = Outcome{}
	// Fail returns ErrInjected and has no effect. But if a sync fails, it marks all pending
	// writes as clean, so later syncs leave them out.
	Fail = Outcome{kind: "fail"}
	// FailHalfway writes the first half of a write and returns ErrInjected. Other calls just
	// fail.
	FailHalfway = Outcome{kind: "fail halfway"}
	// FailAfter makes the call and returns ErrInjected.
	FailAfter = Outcome{kind: "fail after"}
	// Pretend does nothing, but returns as if the call had succeeded. A file that it opens
	// isn't locked, and any name leads to any file.
	Pretend = Outcome{kind: "pretend"}
	// Stop stops the file system: this call and all later ones return ErrStopped.
	Stop = Outcome{kind: "stop"}
)

// With makes the error of a failing call wrap err too.
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

// FS is a directory in memory. You can use it concurrently.
type FS struct {
	mu     sync.Mutex
	decide func(Call) Outcome
	calls  int
	counts map[Op]int

	stopped bool
	// open counts how often an inode is open. That's more than once only without locks.
	open map[*inode]int
	// capacity is the size of the disk in bytes, or 0 without a limit. full is the error of a
	// write that doesn't fit.
	capacity int64
	full     error
	// names is the directory as it looks, durable as it is on disk. pending are the changes
	// between the two.
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

// Decide sets a function that decides the outcome of every later call, before the call is
// made. It can block, and must allow concurrent calls. With nil, all calls succeed.
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

// call makes one call. effect makes it succeed. failing, unless it's nil, has the effects of
// a failing call. Both run with the lock held.
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

// openFile opens a file and locks it. After prepare has succeeded, the file must exist.
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

// Close implements [oplog.FS], and does nothing.
func (f *FS) Close() error { return nil }

// rename changes names atomically. A nil inode removes the name.
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

// ReadFile returns the content of a file, or nil if there is none. It doesn't count as a
// call.
func (f *FS) ReadFile(name string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names[name] == nil {
		return nil
	}
	return append([]byte{}, f.names[name].content...)
}

// Lose zeroes bytes of a file on disk, between two offsets. You don't see it before a crash.
// It doesn't count as a call.
func (f *FS) Lose(name string, from, to int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	clear(f.names[name].durable[from:to])
}

// WriteFile creates or replaces a durable file. It doesn't count as a call.
func (f *FS) WriteFile(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := newInode(content)
	node.name = name
	f.names[name], f.durable[name] = node, node
}

// Overwrite replaces the content of a file, durably. It doesn't count as a call.
func (f *FS) Overwrite(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[name].overwrite(content)
}

// Link gives a file another name, which is durable at once. It doesn't count as a call.
func (f *FS) Link(from, to string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.names[to], f.durable[to] = f.names[from], f.names[from]
}

// Limit sets the size of the disk in bytes. If a write doesn't fit, as much as possible is
// written, and it returns full, for example ENOSPC. Zero means no limit. A file takes up the
// sectors that were written, without the holes between them, until it has no name and is
// closed.
func (f *FS) Limit(capacity int64, full error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.capacity, f.full = capacity, full
}

// Used returns the size of all files, counted like [FS.Limit] does.
func (f *FS) Used() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used()
}

// Free implements [oplog.FS]. It doesn't count as a call.
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

// Names returns the names in the directory, in any order.
func (f *FS) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.names))
}
