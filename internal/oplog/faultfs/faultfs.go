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

// The calls of [oplog.FS] and [oplog.File]. OpSyncDir is the Sync of the directory.
const (
	OpLock     Op = "lock"
	OpOpen     Op = "open"
	OpCreate   Op = "create"
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

// Outcome is the outcome of a call.
type Outcome int

const (
	// Succeed makes the call.
	Succeed Outcome = iota
	// Fail returns ErrInjected without any effect, except that a failed sync marks all
	// pending writes as clean: later syncs leave them out.
	Fail
	// FailHalfway writes the first half of a write and returns ErrInjected; for other
	// calls, it is Fail.
	FailHalfway
	// FailAfter makes the call and returns ErrInjected.
	FailAfter
	// Pretend returns nil without any effect.
	Pretend
	// Stop stops the file system: this call and all later ones return ErrStopped.
	Stop
)

// FS is a directory in memory. It is safe for concurrent use.
type FS struct {
	mu     sync.Mutex
	decide func(Call) Outcome
	calls  int
	counts map[Op]int

	stopped bool
	locked  map[string]bool
	// names is the directory as it looks, durable as it is on disk, and pending the
	// changes between the two.
	names, durable map[string]*inode
	pending        []map[string]*inode
}

// New returns an empty directory.
func New() *FS {
	return &FS{
		counts:  map[Op]int{},
		locked:  map[string]bool{},
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
	case outcome == Fail || outcome == FailHalfway:
		if failing != nil {
			failing(outcome)
		}
		return ErrInjected
	}
	if err := effect(); err != nil {
		return fmt.Errorf("%s %s: %w", op, name, err)
	}
	if outcome == FailAfter {
		return ErrInjected
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

// open makes a call that opens a file, which exists after a nil error of prepare.
func (f *FS) open(op Op, name string, prepare func() error) (oplog.File, error) {
	opened := &file{fs: f, holdsLock: op == OpLock}
	err := f.call(op, name, func() error {
		err := prepare()
		opened.inode = f.names[name]
		return err
	}, nil)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// Lock implements [oplog.FS].
func (f *FS) Lock(name string) (oplog.File, error) {
	return f.open(OpLock, name, func() error {
		if f.locked[name] {
			return oplog.ErrLocked
		}
		if f.names[name] == nil {
			f.rename(map[string]*inode{name: {}})
		}
		f.locked[name] = true
		return nil
	})
}

// Open implements [oplog.FS].
func (f *FS) Open(name string) (oplog.File, error) {
	return f.open(OpOpen, name, func() error {
		if f.names[name] == nil {
			return fs.ErrNotExist
		}
		return nil
	})
}

// Create implements [oplog.FS].
func (f *FS) Create(name string) (oplog.File, error) {
	return f.open(OpCreate, name, func() error {
		if f.names[name] != nil {
			return fs.ErrExist
		}
		f.rename(map[string]*inode{name: {}})
		return nil
	})
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
	for name, node := range f.names {
		node.name = name
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

// WriteFile creates or replaces a durable file. It does not count as a call.
func (f *FS) WriteFile(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := &inode{name: name, content: append([]byte{}, content...), durable: append([]byte{}, content...)}
	f.names[name], f.durable[name] = node, node
}

// Names returns the names in the directory, in no order.
func (f *FS) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Keys(f.names))
}
