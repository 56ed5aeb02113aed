package cache

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"example.com/go-webhookcfg/internal/lru"
	"example.com/go-webhookcfg/webhookcfg"
)

// entries is the content of a [Cache]: whole clients, and single entities of clients that are
// too large, or changed so recently that a page isn't worth reading yet.
type entries struct {
	touchAfter instant // the last use of an entry is recorded again once it's this old

	mu     sync.RWMutex // for everything below
	table  *lru.Map[key, *entry]
	polled instant
}

// key names an entity's entry or, if entity is "", the client's own entry. While a client's
// own entry is missing, the entries of its entities aren't found either.
type key struct{ client, entity string }

// entry is a client's configuration at one moment, or the part of it that decides for one
// entity.
type entry struct {
	of        *client
	started   instant            // when the read started; zero in a client's own entry without a page
	webhook   webhookcfg.Webhook // for all entities without an override
	overrides map[string]webhookcfg.Webhook
	used      atomic.Int64 // the last use that the table knows of, as an instant
}

// resolve returns the webhook in effect for an entity.
func (e *entry) resolve(entity string) webhookcfg.Webhook {
	if hook, ok := e.overrides[entity]; ok {
		return hook
	}
	return e.webhook
}

// client is a client between two changes. Its entries point to it. Entries that point to an
// older client are outdated, so a change costs the same regardless of their number.
type client struct {
	name string
	// checked is when the last check that returned version started. Zero means no check yet.
	checked instant
	version string
	failed  instant // when a read last failed
	// reads counts the reads of single entities. Once there are as many as cost, it's time to
	// read a page.
	reads, cost int
}

const (
	// rowsPerRead is the number of rows that cost as much as a read. On PostgreSQL, a page of
	// 256 rows takes about seven times as long as one entity.
	rowsPerRead = 32
	// largeCost is the number of reads after which we try again whether a client that was too
	// large has become smaller.
	largeCost = 256
)

func newEntries(limit int, touchAfter instant) *entries {
	seed := maphash.MakeSeed()
	owner := func(k key) uint64 {
		if k.entity == "" {
			return ^maphash.String(seed, k.client) // doesn't count towards the client's entities
		}
		return maphash.String(seed, k.client)
	}
	return &entries{touchAfter: touchAfter, table: lru.NewSized(limit, owner, sizeOf)}
}

// lookup returns the entry that decides for an entity. It returns nil if there's none that
// was still correct after the given instant.
func (t *entries) lookup(client, entity string, now, after instant) *entry {
	t.mu.RLock()
	e := t.find(client, entity)
	valid := e != nil && max(t.polled, e.of.checked, e.started) > after
	t.mu.RUnlock()
	if !valid {
		return nil
	}
	if used := e.used.Load(); now-instant(used) > t.touchAfter && e.used.CompareAndSwap(used, int64(now)) {
		t.touch(client, entity)
	}
	return e
}

// find returns the entry that decides for an entity, or nil. Hold mu.
func (t *entries) find(client, entity string) *entry {
	own, _ := t.table.Peek(key{client, ""})
	if own == nil || own.started > 0 {
		return own
	}
	if e, _ := t.table.Peek(key{client, entity}); e != nil && e.of == own.of {
		return e
	}
	return nil
}

// touch marks an entry as used. It marks the client's own entry last, so that this one
// outlives the other.
func (t *entries) touch(client, entity string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.table.Get(key{client, entity})
	t.table.Get(key{client, ""})
}

// keep adds the result of a read. It's nil for a page of a client that's too large. The
// result of a later read isn't replaced.
func (t *entries) keep(k key, e *entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own, ok := t.table.Peek(key{k.client, ""})
	if !ok {
		own = t.reset(&client{name: k.client})
	}
	of := own.of
	switch {
	case e == nil:
		of.reads, of.cost = 0, largeCost
		t.reset(of)
	case own.started > e.started || own.started > 0 && k.entity != "":
	case k.entity == "":
		of.cost = len(e.overrides) / rowsPerRead
		of.reads = of.cost
		t.put(key{of.name, ""}, e, of)
	default:
		k.client = of.name // to share its memory
		if old, _ := t.table.Peek(k); old == nil || old.of != of || old.started <= e.started {
			t.put(k, e, of)
			t.table.Get(key{of.name, ""})
		}
	}
}

// reset replaces a client's own entry by one without a page. Hold mu.
func (t *entries) reset(of *client) *entry {
	e := new(entry)
	t.put(key{of.name, ""}, e, of)
	return e
}

func (t *entries) put(k key, e *entry, of *client) {
	e.of = of
	e.used.Store(int64(e.started))
	t.table.Put(k, e)
}

// drop drops the entries of a client that changed.
func (t *entries) drop(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own, ok := t.table.Peek(key{name, ""}); ok {
		t.reset(&client{name: own.of.name, cost: own.of.cost})
	}
}

func (t *entries) dropAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.table.Clear()
}

// vouch records that all entries were correct at an instant, except for those dropped since.
func (t *entries) vouch(polled instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.polled = polled
}

// check records a version from a check that started at the given instant. If it's a new
// version, check drops the client's entries, which can be older, and returns true.
func (t *entries) check(name, version string, started instant) (dropped bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	own, ok := t.table.Peek(key{name, ""})
	if !ok {
		return false
	}
	if own.of.checked > 0 && own.of.version == version {
		own.of.checked = started
		return false
	}
	next := &client{name: own.of.name, cost: own.of.cost, checked: started, version: strings.Clone(version)}
	if own.of.checked == 0 { // the first version: we know of no change
		next.reads = own.of.reads
	}
	t.reset(next)
	return true
}

// fail records that a read of a client failed.
func (t *entries) fail(name string, now instant) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own, ok := t.table.Peek(key{name, ""}); ok {
		own.of.failed = now
	}
}

// failing reports whether a read of a client failed after the given instant.
func (t *entries) failing(name string, after instant) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	own, ok := t.table.Peek(key{name, ""})
	return ok && own.of.failed > after
}

// needsPage reports whether the next read of a client should be a page.
func (t *entries) needsPage(name string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	own, ok := t.table.Peek(key{name, ""})
	return !ok || own.of.reads >= own.of.cost
}

// countRead counts a read of one entity. After enough of them, the client is read as a page.
func (t *entries) countRead(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own, ok := t.table.Peek(key{name, ""}); ok {
		own.of.reads++
	}
}

// names returns the clients with entries. They're sorted, so that two checks of a client are
// one round apart.
func (t *entries) names() (names []string) {
	t.mu.RLock()
	for k := range t.table.All() {
		if k.entity == "" {
			names = append(names, k.client)
		}
	}
	t.mu.RUnlock()
	slices.Sort(names)
	return names
}

// expect adds a client without entries, so that the next poll asks for its version.
func (t *entries) expect(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.table.Peek(key{name, ""}); !ok {
		t.reset(&client{name: strings.Clone(name)})
	}
}

// size returns the number of entries and their size in bytes.
func (t *entries) size() (n, bytes int) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.table.Len(), t.table.Size()
}

// Entries take about this much on 64-bit systems, with maps as empty as Go lets them be.
const (
	entrySize    = 330
	clientSize   = 300
	overrideSize = 220
	stringSize   = 16 // the allocator adds this much to a string
)

// sizeOf estimates how many bytes an entry takes.
func sizeOf(k key, e *entry) int {
	size := entrySize + textSize(k.entity) + textSize(e.webhook.URL.Reveal())
	if k.entity == "" {
		size += clientSize + textSize(e.of.name) + textSize(e.of.version)
	}
	for entity, hook := range e.overrides {
		size += overrideSize + textSize(entity) + textSize(hook.URL.Reveal())
	}
	return size
}

func textSize(text string) int {
	if text == "" {
		return 0
	}
	return len(text) + len(text)/8 + stringSize
}
