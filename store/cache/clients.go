package cache

import (
	"math"
	"sync"
	"sync/atomic"

	"example.com/go-webhookcfg/webhookcfg"
)

// copies are what a [Cache] knows of its clients.
//
// Why no answer is older than the bound. Let c be a change that the answer of a
// Resolve lacks. The answer is from a read of the store, which began before c could
// be seen.
//
//  1. A read that lacks c and began at t says that c was later than t. So entry.began
//     vouches for an entry, and flight.began for whoever joins the flight.
//  2. Suppose that a poll of a Feed began at t, when c could be seen, and is over. It
//     named the client, or an earlier poll did, in an answer that came when c could be
//     seen. Then the copy of the client was dropped. If the read was over by then, it
//     was kept in that copy, and if it was not, it still belongs to that copy, which
//     nobody looks at any more. So if an entry is found after a poll was over, what it
//     lacks is later than t: Cache.polled vouches for all entries that are looked up
//     after it.
//  3. Suppose that a check of a client's version began at t, and gave what an earlier
//     check gave. Nothing changed between the two. The copy of the client was made
//     when the earlier check was over, and empty, so that the reads in it came later.
//     So copied.checked vouches for the entries of that copy.
//
// Whoever has one of these moments later than the beginning of a Resolve less the
// bound has an answer within the bound.
type copies struct {
	entries entries
	// epoch is that of the copies that are in effect.
	epoch atomic.Uint64

	mu      sync.Mutex // for what follows, and to change anything of the above
	closed  bool
	clients map[string]*copied
	// changing counts, by client, the changes that are being made through the Cache.
	changing map[string]int
	size     int // how many entries are in effect
}

// copied is the copy of one client. It is dropped at a cost that does not depend on
// what it holds: its entries are found no more, and make room when others need it.
type copied struct {
	client string
	epoch  uint64
	void   atomic.Bool
	// checked is when the last check began that gave this version; 0: there was none.
	checked atomic.Int64
	version string

	size int // of the entries that are in effect
	// flights are the reads that can be joined, by entity.
	flights map[string]*flight
}

func newCopies(maxEntries int) *copies {
	return &copies{
		entries:  newEntries(maxEntries),
		clients:  map[string]*copied{},
		changing: map[string]int{},
	}
}

// find returns what is kept, nil if there is nothing.
func (t *copies) find(client, entity string) *entry {
	hash := t.entries.hash(client, entity)
	for n := range places {
		e := t.entries.place(hash, n).Load()
		if e != nil && e.entity.is(entity) && e.of.client == client && t.inEffect(e.of) {
			return e
		}
	}
	return nil
}

func (t *copies) inEffect(of *copied) bool { return !of.void.Load() && of.epoch == t.epoch.Load() }

// drop forgets a client.
func (t *copies) drop(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.forget(client)
}

// dropAll forgets all clients.
func (t *copies) dropAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.epoch.Add(1)
	t.clients, t.size = map[string]*copied{}, 0
}

// close forgets everything for good.
func (t *copies) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.dropAll()
}

// count returns how many entries there are.
func (t *copies) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.size
}

// names returns the clients of whom something is kept, and forgets those of whom
// there is nothing. Who is only being read may not be known to the store.
func (t *copies) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, 0, len(t.clients))
	for client, of := range t.clients {
		if of.size > 0 {
			names = append(names, client)
		}
		t.tidy(of)
	}
	return names
}

// check takes down a version, given by a check that began at the moment.
func (t *copies) check(client, version string, began moment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	of := t.clients[client]
	switch {
	case of == nil:
	case of.checked.Load() > 0 && of.version == version:
		of.checked.Store(int64(began))
	default: // all that it has may be from before the version
		t.forget(client)
		of = t.know(client)
		of.version = version
		of.checked.Store(int64(began))
	}
}

// beginChange and endChange are around a change that is made through the Cache.
func (t *copies) beginChange(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changing[client]++
	t.forget(client)
}

func (t *copies) endChange(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changing[client]--; t.changing[client] == 0 {
		delete(t.changing, client)
	}
}

// The rest is called with t.mu held.

// know returns the copy of a client, to be added to.
func (t *copies) know(client string) *copied {
	of := t.clients[client]
	if of == nil {
		of = &copied{client: client, epoch: t.epoch.Load(), flights: map[string]*flight{}}
		t.clients[client] = of
	}
	return of
}

func (t *copies) forget(client string) {
	if of := t.clients[client]; of != nil {
		of.void.Store(true)
		of.flights = nil // who is in one is told there
		t.size -= of.size
		delete(t.clients, client)
	}
}

// keep keeps an answer in the copy that the read belongs to.
func (t *copies) keep(f *flight, hook webhookcfg.Webhook) {
	e := &entry{f.of, newEntityName(f.entity), hook, f.began}
	slot := t.slot(e, f.entity)
	if old := slot.Load(); old != nil && t.inEffect(old.of) {
		t.add(old.of, -1)
		defer t.tidy(old.of)
	}
	slot.Store(e)
	t.add(e.of, 1)
}

func (t *copies) add(of *copied, n int) {
	of.size += n
	t.size += n
}

// slot returns where to put an entry: in the place of the one before it, or in a free
// one, or in that of the client who has the most, so that who asks for a lot pushes
// out their own.
func (t *copies) slot(e *entry, entity string) *slot {
	hash := t.entries.hash(e.of.client, entity)
	var best *slot
	most := 0
	for n := range places {
		slot := t.entries.place(hash, n)
		old, size := slot.Load(), math.MaxInt
		if old != nil && t.inEffect(old.of) {
			if old.of == e.of && old.entity.is(entity) {
				return slot
			}
			size = old.of.size
		}
		if size > most {
			best, most = slot, size
		}
	}
	return best
}

// tidy forgets a client of whom nothing is left.
func (t *copies) tidy(of *copied) {
	if of.isEmpty() && t.clients[of.client] == of {
		t.forget(of.client)
	}
}

func (of *copied) isEmpty() bool { return of.size == 0 && len(of.flights) == 0 }
