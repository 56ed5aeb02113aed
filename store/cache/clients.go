package cache

import (
	"container/heap"
	"strings"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/singleflight"
	"example.com/go-webhookcfg/webhookcfg"
)

// instant is a time on the monotonic clock: the time since [Cache.zero]. Zero stands
// for never.
type instant = time.Duration

// clients holds the entries of a [Cache], by client.
//
// Why no result is older than the bound. Let c be a change that the result of a
// Resolve lacks. The result comes from a read of the store, which started before c was
// visible there.
//
//  1. A read that lacks c and started at t proves that c became visible after t. So
//     cachedWebhook.started vouches for an entry, and readResult.started for every
//     caller that shares the read.
//  2. Suppose that a poll of a Feed started at t, when c was visible, and has ended. It
//     named the client, or an earlier poll did, in a response that arrived when c was
//     visible. Then the clientEntries of the client were dropped. If the read had ended
//     by then, its result was in them; if not, it still belongs to them, and nothing
//     looks at them any more. So an entry that is found after a poll ended lacks only
//     changes later than t: clients.polled vouches for all entries.
//  3. Suppose that a check of a client's version started at t, and returned what an
//     earlier check returned. Nothing changed between the two. The clientEntries were
//     made when the earlier check had ended, and empty, so that the reads in them came
//     later. So clientEntries.checked vouches for its entries.
//
// If one of these instants is later than the start of a Resolve less the bound, the
// result is within the bound.
type clients struct {
	limit int // of the number of entries
	held  sync.WaitGroup

	mu     sync.RWMutex // for what follows
	closed bool
	byName map[string]*clientEntries
	bySize sizeHeap
	size   int    // the number of entries
	seq    uint64 // of the last entry that was added
	polled instant
	// changing counts the changes in progress through the Cache, by client.
	changing map[string]int
}

// clientEntries are the entries of one client. They are dropped together.
type clientEntries struct {
	client  string
	reads   singleflight.Group[readResult]
	entries map[string]cachedWebhook
	users   int // callers and reads that hold it
	index   int // in the heap
	seq     uint64
	// checked is when the last check started that returned version; zero if there was none.
	checked instant
	version string
}

// cachedWebhook is an entry. An entity without a webhook has one too.
type cachedWebhook struct {
	hook    webhookcfg.Webhook
	started instant // of the read
}

func newClients(limit int) *clients {
	return &clients{limit: limit, byName: map[string]*clientEntries{}, changing: map[string]int{}}
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

// join returns the entries of a client for a caller that reads, which must release
// them; nil if the client is being changed through the Cache.
func (t *clients) join(client string) (*clientEntries, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	if t.changing[client] > 0 {
		return nil, nil
	}
	owner := t.byName[client]
	if owner == nil {
		owner = t.add(strings.Clone(client))
	}
	t.retain(owner)
	return owner, nil
}

// hold retains entries for a read, which may outlive the caller that started it.
func (t *clients) hold(owner *clientEntries) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	t.retain(owner)
	return nil
}

func (t *clients) release(owner *clientEntries) {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.held.Done()
	owner.users--
	t.tidy(owner)
}

// put keeps the result of a read in the entries that it belongs to. They may have been
// dropped since it started, or a later read may have ended first.
func (t *clients) put(owner *clientEntries, entity string, r readResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byName[owner.client] != owner {
		return
	}
	old, known := owner.entries[entity]
	if known && old.started > r.started {
		return
	}
	owner.entries[entity] = cachedWebhook(r)
	if known {
		return
	}
	t.seq++
	owner.seq = t.seq
	t.resized(owner, +1)
	if t.size > t.limit {
		largest := t.bySize[0]
		for entity := range largest.entries {
			delete(largest.entries, entity)
			break
		}
		t.resized(largest, -1)
		t.tidy(largest)
	}
}

// count returns the number of entries.
func (t *clients) count() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.size
}

// names returns the clients that have entries, and drops those that neither have nor
// await any. It skips a client that is only being read, because it may be unknown to the
// store.
func (t *clients) names() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	names := make([]string, 0, len(t.byName))
	for client, owner := range t.byName {
		if len(owner.entries) > 0 {
			names = append(names, client)
		}
		t.tidy(owner)
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
		t.drop(t.byName[client])
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
		t.drop(owner)
		owner = t.add(client)
		owner.checked, owner.version = started, version
	}
}

// startChange and endChange enclose a change that is made through the Cache.
func (t *clients) startChange(client string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.changing[client]++
	t.drop(t.byName[client])
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

func (t *clients) retain(owner *clientEntries) {
	owner.users++
	t.held.Add(1)
}

func (t *clients) resized(owner *clientEntries, by int) {
	t.size += by
	heap.Fix(&t.bySize, owner.index)
}

// tidy drops entries that are empty and that no caller or read holds.
func (t *clients) tidy(owner *clientEntries) {
	if owner.users == 0 && len(owner.entries) == 0 && t.byName[owner.client] == owner {
		t.drop(owner)
	}
}

func (t *clients) drop(owner *clientEntries) {
	if owner != nil {
		heap.Remove(&t.bySize, owner.index)
		delete(t.byName, owner.client)
		t.size -= len(owner.entries)
	}
}

func (t *clients) dropAll() {
	t.byName, t.bySize, t.size = map[string]*clientEntries{}, nil, 0
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
