package cache

import (
	"container/heap"
	"sync"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// instant is a time on the monotonic clock: the time since [Cache.zero]. Zero stands
// for never.
type instant = time.Duration

// clients holds the entries of a [Cache] and its reads in progress, by client.
//
// Why no result is older than the bound. Let c be a change that the result of a
// Resolve lacks. The result comes from a read of the store, which started before c was
// visible there.
//
//  1. A read that lacks c and started at t proves that c became visible after t. So
//     cachedWebhook.started vouches for an entry, and sharedRead.since for every caller
//     that shares the read.
//  2. Suppose that a poll of a Feed started at t, when c was visible, and has ended. It
//     named the client, or an earlier poll did, in a response that arrived when c was
//     visible. Then the client was dropped. If the read had ended by then, its result was
//     dropped with it; if not, it belongs to an earlier epoch, and is not kept. So an
//     entry that is found after a poll ended lacks only changes later than t:
//     clients.polled vouches for all entries.
//  3. Suppose that a check of a client's version started at t, and returned what an
//     earlier check returned. Nothing changed between the two. When the earlier check had
//     ended, the client was dropped, so that the reads of its entries came later. So
//     clientEntries.checked vouches for its entries.
//
// If one of these instants is later than the start of a Resolve less the bound, the
// result is within the bound.
type clients struct {
	limit          int // of the number of entries
	turnsPerClient int
	held           sync.WaitGroup // the reads in progress or waiting for their turn

	mu     sync.RWMutex // for what follows
	closed bool
	byName map[string]*clientEntries
	bySize sizeHeap
	size   int    // the number of entries
	seq    uint64 // of the last entry that was added
	polled instant
	// reading has the clients with reads in progress or waiting for their turn.
	reading map[string]*clientReads
	// changing counts the changes in progress through the Cache, by client.
	changing map[string]int
}

// clientEntries are the entries of one client. They are dropped together.
type clientEntries struct {
	client  string
	entries map[string]cachedWebhook
	index   int // in the heap
	seq     uint64
	// checked is when the last check started that returned version; zero if there was none.
	checked instant
	version string
	failed  instant // when a read failed last
}

// cachedWebhook is an entry. An entity without a webhook has one too.
type cachedWebhook struct {
	hook    webhookcfg.Webhook
	started instant // of the read
}

func newClients(limit, turnsPerClient int) *clients {
	return &clients{
		limit:          limit,
		turnsPerClient: turnsPerClient,
		byName:         map[string]*clientEntries{},
		reading:        map[string]*clientReads{},
		changing:       map[string]int{},
	}
}

// lookup returns an entry if it was still correct after the given instant.
func (t *clients) lookup(client, entity string, after instant) (hook webhookcfg.Webhook, ok bool) {
	t.mu.RLock()
	if owner := t.byName[client]; owner != nil {
		if e := owner.entries[entity]; e.started > 0 && max(t.polled, owner.checked, e.started) > after {
			hook, ok = e.hook, true
		}
	}
	t.mu.RUnlock()
	return hook, ok
}

// fail records that a read of a client failed.
func (t *clients) fail(client string, now instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if owner := t.byName[client]; owner != nil {
		owner.failed = now
	}
}

// failing reports whether a read of a client failed after the given instant.
func (t *clients) failing(client string, after instant) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	owner := t.byName[client]
	return owner != nil && owner.failed > after
}

// count returns the number of entries.
func (t *clients) count() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.size
}

// names returns the clients that have entries, and forgets those that neither have nor
// await any. It skips a client that is only being read, because it may be unknown to the
// store.
func (t *clients) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, 0, len(t.byName))
	for client, owner := range t.byName {
		if len(owner.entries) > 0 {
			names = append(names, client)
		} else if t.reading[client] == nil {
			t.remove(owner)
		}
	}
	return names
}

// apply drops the clients that changed according to a poll that started at the given
// instant.
func (t *clients) apply(changes Changes, started instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if changes.Reset {
		t.dropAll()
	}
	for _, client := range changes.Clients {
		t.drop(client)
	}
	t.polled = started
}

// check records a version from a check that started at the given instant.
func (t *clients) check(client, version string, started instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	owner := t.byName[client]
	switch {
	case owner == nil:
	case owner.checked > 0 && owner.version == version:
		owner.checked = started
	default: // all entries may be from before the version
		t.drop(client)
		owner = t.add(client)
		owner.checked, owner.version = started, version
	}
}

// startChange and endChange enclose a change that is made through the Cache.
func (t *clients) startChange(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changing[client]++
	t.drop(client)
}

func (t *clients) endChange(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.changing[client]--; t.changing[client] == 0 {
		delete(t.changing, client)
	}
}

// close drops everything for good, and waits for the reads.
func (t *clients) close() {
	t.mu.Lock()
	t.closed = true
	t.dropAll()
	t.mu.Unlock()
	t.held.Wait()
}

// The rest is called with t.mu held.

func (t *clients) add(client string) *clientEntries {
	owner := &clientEntries{client: client, entries: map[string]cachedWebhook{}}
	t.byName[client] = owner
	heap.Push(&t.bySize, owner)
	return owner
}

// put adds an entry, unless there is one from a later read.
func (t *clients) put(client, entity string, e cachedWebhook) {
	owner := t.byName[client]
	if owner == nil {
		owner = t.add(client)
	}
	old, known := owner.entries[entity]
	if known && old.started > e.started {
		return
	}
	owner.entries[entity] = e
	if known {
		return
	}
	t.seq++
	owner.seq = t.seq
	t.resized(owner, +1)
	if t.size > t.limit {
		t.evict(t.bySize[0])
	}
}

func (t *clients) evict(largest *clientEntries) {
	for entity := range largest.entries {
		delete(largest.entries, entity)
		break
	}
	t.resized(largest, -1)
	if len(largest.entries) == 0 {
		t.remove(largest)
	}
}

func (t *clients) resized(owner *clientEntries, by int) {
	t.size += by
	heap.Fix(&t.bySize, owner.index)
}

// drop removes the entries of a client, and has the results of its reads in progress
// neither kept nor shared with later callers.
func (t *clients) drop(client string) {
	if owner := t.byName[client]; owner != nil {
		t.remove(owner)
	}
	if of := t.reading[client]; of != nil {
		of.epoch++
	}
}

func (t *clients) dropAll() {
	t.byName, t.bySize, t.size = map[string]*clientEntries{}, nil, 0
	for _, of := range t.reading {
		of.epoch++
	}
}

func (t *clients) remove(owner *clientEntries) {
	heap.Remove(&t.bySize, owner.index)
	delete(t.byName, owner.client)
	t.size -= len(owner.entries)
}

// sizeHeap has the client with the most entries first and, among equals, the one that has
// gone longest without a new entry. It implements [heap.Interface].
type sizeHeap []*clientEntries

func (h sizeHeap) Len() int { return len(h) }

func (h sizeHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if len(a.entries) != len(b.entries) {
		return len(a.entries) > len(b.entries)
	}
	return a.seq < b.seq
}

func (h sizeHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *sizeHeap) Push(x any) {
	owner := x.(*clientEntries)
	owner.index = len(*h)
	*h = append(*h, owner)
}

func (h *sizeHeap) Pop() any {
	last := len(*h) - 1
	owner := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return owner
}
