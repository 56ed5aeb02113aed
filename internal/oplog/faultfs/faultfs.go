// Package faultfs is a file system in memory that fails where a test wants it to.
// It is an [oplog.FS] for one folder.
//
// It tells what was written from what is durable, for the content of files and
// for the names in the folder, each with a sync of its own. [FS.Crash] is the file
// system that a machine finds after a power cut, [FS.Restart] the one that a
// process finds after another was killed.
package faultfs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync"

	"example.com/go-webhookcfg/internal/oplog"
)

// Errors of calls that did not go well; see [Outcome].
var (
	ErrInjected = errors.New("faultfs: injected failure")
	ErrStopped  = errors.New("faultfs: the world has stopped")
)

// Op is a kind of call.
type Op string

// The calls of [oplog.FS] and [oplog.File]. OpSyncDir is the Sync of the folder.
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
	// N counts the calls from 1 on.
	N    int
	Op   Op
	Name string
}

// Outcome is what becomes of a call.
type Outcome int

const (
	// Succeed lets the call be.
	Succeed Outcome = iota
	// Fail returns ErrInjected without any effect, except that a sync that fails
	// takes what was written for clean: later syncs leave it out.
	Fail
	// FailHalfway writes the first half and returns ErrInjected; it fails any other call.
	FailHalfway
	// FailAfter has the whole effect and yet returns ErrInjected.
	FailAfter
	// Pretend returns nil without any effect.
	Pretend
	// Stop ends the world: this call and all later ones return ErrStopped.
	Stop
)

// FS is a folder in memory. It is safe for concurrent use.
type FS struct {
	mu     sync.Mutex
	decide func(Call) Outcome
	calls  int
	counts map[Op]int

	stopped bool
	locked  map[string]bool
	// names is the folder as it looks, durable as it is on the disk, and pending
	// what leads from the one to the other.
	names, durable map[string]*inode
	pending        []map[string]*inode
}

// New returns an empty folder.
func New() *FS {
	return &FS{
		counts:  map[Op]int{},
		locked:  map[string]bool{},
		names:   map[string]*inode{},
		durable: map[string]*inode{},
	}
}

// Decide asks decide about every call from now on, before it is made; nil lets
// all succeed. decide may be called from several goroutines, and may block.
func (f *FS) Decide(decide func(Call) Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.decide = decide
}

// Calls returns how many calls there were.
func (f *FS) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Count returns how many calls of one kind there were.
func (f *FS) Count(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[op]
}

// call makes one call. What it does is done by effect and, where the call fails
// but not without a trace, by failing; either may be nil. Both run with the lock held.
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

// Lock implements [oplog.FS].
func (f *FS) Lock(name string) (opened oplog.File, err error) {
	err = f.call(OpLock, name, func() error {
		if f.locked[name] {
			return oplog.ErrLocked
		}
		if f.names[name] == nil {
			f.rename(map[string]*inode{name: {}})
		}
		f.locked[name] = true
		opened = &file{fs: f, inode: f.names[name], holdsLock: true}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// Open implements [oplog.FS].
func (f *FS) Open(name string) (opened oplog.File, err error) {
	err = f.call(OpOpen, name, func() error {
		if f.names[name] == nil {
			return fs.ErrNotExist
		}
		opened = &file{fs: f, inode: f.names[name]}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return opened, nil
}

// Create implements [oplog.FS].
func (f *FS) Create(name string) (opened oplog.File, err error) {
	err = f.call(OpCreate, name, func() error {
		if f.names[name] != nil {
			return fs.ErrExist
		}
		f.rename(map[string]*inode{name: {}})
		opened = &file{fs: f, inode: f.names[name]}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return opened, nil
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

// Close implements [oplog.FS]; there is nothing that it could do.
func (f *FS) Close() error { return nil }

// rename changes names, all at once; nil removes one.
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

// ReadFile returns what a file looks like, nil without one. It is no call.
func (f *FS) ReadFile(name string) []byte {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names[name] == nil {
		return nil
	}
	return append([]byte{}, f.names[name].content...)
}

// WriteFile makes a durable file of the content, in the place of another. It is no call.
func (f *FS) WriteFile(name string, content []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	node := &inode{name: name, content: append([]byte{}, content...), durable: append([]byte{}, content...)}
	f.names[name], f.durable[name] = node, node
}

// Names returns the names in the folder, in no order.
func (f *FS) Names() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for name := range f.names {
		names = append(names, name)
	}
	return names
}
