package main

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// gather makes the items that many callers add at once durable together. The
// first to come leads: it waits for the disk, lets others join as long as they
// keep coming, and commits for all of them.
type gather[T any] struct {
	commit  func([]T) error
	commits atomic.Int64

	disk sync.Mutex // held by who commits

	mu      sync.Mutex // guards pending
	pending *gathering[T]
}

type gathering[T any] struct {
	items []T
	done  chan struct{}
	err   error
}

func newGather[T any](commit func([]T) error) *gather[T] {
	return &gather[T]{commit: commit, pending: newGathering[T](0)}
}

func newGathering[T any](likely int) *gathering[T] {
	return &gathering[T]{items: make([]T, 0, likely), done: make(chan struct{})}
}

// add returns when item is durable.
func (g *gather[T]) add(item T) error {
	g.mu.Lock()
	joined := g.pending
	joined.items = append(joined.items, item)
	leads := len(joined.items) == 1
	g.mu.Unlock()
	if leads {
		g.lead(joined)
	}
	<-joined.done
	return joined.err
}

func (g *gather[T]) lead(joined *gathering[T]) {
	g.disk.Lock()
	defer g.disk.Unlock()
	defer close(joined.done)
	g.waitForOthers()
	g.mu.Lock()
	g.pending = newGathering[T](len(joined.items))
	g.mu.Unlock()
	g.commits.Add(1)
	joined.err = g.commit(joined.items)
}

// waitForOthers lets others run as long as they keep joining.
func (g *gather[T]) waitForOthers() {
	for seen := 0; ; {
		runtime.Gosched()
		g.mu.Lock()
		n := len(g.pending.items)
		g.mu.Unlock()
		if n == seen {
			return
		}
		seen = n
	}
}
