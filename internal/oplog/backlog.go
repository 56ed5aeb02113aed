package oplog

import (
	"hash/maphash"
	"iter"
	"slices"
	"sync"

	"example.com/go-webhookcfg/webhookcfg"
)

const (
	// few is how many changes are applied without others reading in between.
	few = 16
	// maxWaiting is how many groups wait at most.
	maxWaiting = 2
)

// backlog is a state, and the changes that are durable but not applied to it yet.
// Their callers are answered meanwhile. Who reads what they reach applies them first.
type backlog struct {
	state State
	tally tally
	// waiting carries the changes of a group to the state; spaces carries back the
	// space they took. Beside those that wait, one is being written and one applied.
	waiting, spaces chan []webhookcfg.Change
	turn            chan struct{}  // holds a token while somebody applies
	beside          sync.WaitGroup // of those who apply beside a write
}

func newBacklog(state State) *backlog {
	b := &backlog{
		state:   state,
		tally:   tally{seed: maphash.MakeSeed()},
		waiting: make(chan []webhookcfg.Change, maxWaiting),
		spaces:  make(chan []webhookcfg.Change, maxWaiting+2),
		turn:    make(chan struct{}, 1),
	}
	for range cap(b.spaces) {
		b.spaces <- nil
	}
	return b
}

// add has changes wait, once there is room for them, for which somebody must have called
// apply since the last add. One goroutine may call it, with space from spaces.
func (b *backlog) add(changes []webhookcfg.Change) {
	b.tally.add(changes, 1)
	b.waiting <- changes
}

// apply returns when the state has all that was added before. What is added meanwhile is
// left to others, as there may be no end of it.
func (b *backlog) apply() {
	b.turn <- struct{}{}
	defer func() { <-b.turn }()
	for range len(b.waiting) {
		b.applyGroup(<-b.waiting)
	}
}

func (b *backlog) applyGroup(changes []webhookcfg.Change) {
	for next := range slices.Chunk(changes, few) {
		b.state.Apply(next)
		b.tally.add(next, -1)
	}
	clear(changes)
	b.spaces <- changes[:0]
}

// applyBeside applies what waits while the caller does something else.
func (b *backlog) applyBeside() {
	if !b.isEmpty() {
		b.beside.Go(b.apply)
	}
}

func (b *backlog) isEmpty() bool { return b.tally.isZero() }

// Len returns how many changes Snapshot would yield, or a few more.
func (b *backlog) Len() int { return int(b.tally.total.Load()) + b.state.Len() }

// Snapshot is that of the state, when it has all that was added before.
func (b *backlog) Snapshot() iter.Seq[webhookcfg.Change] {
	b.apply()
	return b.state.Snapshot()
}
