// Package lru has a map of bounded size that several owners can share.
package lru

import (
	"container/heap"
	"iter"
)

// Map is a map that evicts entries when it's too large. Get and Put count as uses. Don't call
// its methods concurrently, except for Peek with Peek. Make one with [New], [NewShared] or
// [NewSized].
type Map[K comparable, V any] struct {
	limit   int
	owner   func(K) uint64
	sizeOf  func(K, V) int
	size    int // of all entries
	byKey   map[K]*node[K, V]
	byOwner map[uint64]*share[K, V]
	largest shareHeap[K, V]
	uses    uint64
}

// node is an entry in the list of its share.
type node[K comparable, V any] struct {
	key          K
	value        V
	size         int
	share        *share[K, V]
	newer, older *node[K, V]
}

// share holds the entries of one owner, in the order of their use. They're a ring, so the
// oldest comes after the newest.
type share[K comparable, V any] struct {
	owner  uint64
	newest *node[K, V]
	count  int
	used   uint64 // the value of Map.uses at the last use
	index  int    // in the heap
}

// link makes a node the newest.
func (s *share[K, V]) link(n *node[K, V]) {
	if s.count == 0 {
		n.newer, n.older = n, n
	} else {
		n.newer, n.older = s.newest.newer, s.newest
		n.newer.older, n.older.newer = n, n
	}
	s.newest = n
	s.count++
}

func (s *share[K, V]) unlink(n *node[K, V]) {
	n.newer.older, n.older.newer = n.older, n.newer
	if s.newest == n {
		s.newest = n.older
	}
	s.count--
}

// New returns an empty map of at most limit entries. The limit must be positive. If the map
// is too large, it evicts the least recently used entry.
func New[K comparable, V any](limit int) *Map[K, V] {
	return NewShared[K, V](limit, func(K) uint64 { return 0 })
}

// NewShared is like New, but evicts from the owner with the most entries. So nobody can
// displace the entries of others by adding more than they have. If several owners have the
// most, the map takes the one that has been idle longest. Within an owner, it evicts the
// least recently used entry. The function returns the owner of a key, or a hash of the owner.
// Owners with the same hash count as one.
func NewShared[K comparable, V any](limit int, owner func(K) uint64) *Map[K, V] {
	return NewSized(limit, owner, func(K, V) int { return 1 })
}

// NewSized is like NewShared, but limits the total size of the entries. The map asks sizeOf
// for an entry's size when you put it.
func NewSized[K comparable, V any](limit int, owner func(K) uint64, sizeOf func(K, V) int) *Map[K, V] {
	m := &Map[K, V]{limit: limit, owner: owner, sizeOf: sizeOf}
	m.Clear()
	return m
}

// Len returns how many entries there are.
func (m *Map[K, V]) Len() int { return len(m.byKey) }

// Size returns the total size of the entries.
func (m *Map[K, V]) Size() int { return m.size }

// All returns the entries in any order. It doesn't mark them as used.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key, n := range m.byKey {
			if !yield(key, n.value) {
				return
			}
		}
	}
}

// Peek returns the value of a key, but doesn't mark it as used.
func (m *Map[K, V]) Peek(key K) (value V, ok bool) {
	n, ok := m.byKey[key]
	if !ok {
		return value, false
	}
	return n.value, true
}

// Get returns the value of a key and marks it as used.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	n, ok := m.byKey[key]
	if !ok {
		return value, false
	}
	m.use(n)
	return n.value, true
}

// Put sets the value of a key and marks it as used. It can evict other entries. If the entry
// is larger than the limit, Put doesn't keep it.
func (m *Map[K, V]) Put(key K, value V) {
	size := m.sizeOf(key, value)
	if size > m.limit {
		m.Remove(key)
		return
	}
	n, ok := m.byKey[key]
	if ok {
		m.use(n)
	} else {
		n = &node[K, V]{key: key, share: m.share(m.owner(key))}
		m.byKey[key] = n
		n.share.link(n)
		m.touch(n.share)
	}
	m.size += size - n.size
	n.value, n.size = value, size
	for m.size > m.limit {
		next, _ := m.Next()
		m.Remove(next)
	}
}

// Next returns the key of the entry that Put would evict next. It's for callers that have to
// do something when they evict an entry.
func (m *Map[K, V]) Next() (key K, ok bool) {
	if len(m.largest) == 0 {
		return key, false
	}
	return m.largest[0].newest.newer.key, true
}

// Remove removes a key, if it's there.
func (m *Map[K, V]) Remove(key K) {
	n, ok := m.byKey[key]
	if !ok {
		return
	}
	delete(m.byKey, key)
	m.size -= n.size
	s := n.share
	s.unlink(n)
	if s.count > 0 {
		heap.Fix(&m.largest, s.index)
		return
	}
	heap.Remove(&m.largest, s.index)
	delete(m.byOwner, s.owner)
}

// Clear removes all entries and frees their memory.
func (m *Map[K, V]) Clear() {
	m.byKey, m.byOwner = map[K]*node[K, V]{}, map[uint64]*share[K, V]{}
	m.largest, m.size = nil, 0
}

func (m *Map[K, V]) use(n *node[K, V]) {
	n.share.unlink(n)
	n.share.link(n)
	m.touch(n.share)
}

// share returns the share of an owner. A new one is empty.
func (m *Map[K, V]) share(owner uint64) *share[K, V] {
	s, ok := m.byOwner[owner]
	if !ok {
		s = &share[K, V]{owner: owner}
		m.byOwner[owner] = s
		heap.Push(&m.largest, s)
	}
	return s
}

// touch marks a share as used and moves it to its new place in the heap.
func (m *Map[K, V]) touch(s *share[K, V]) {
	m.uses++
	s.used = m.uses
	heap.Fix(&m.largest, s.index)
}

// shareHeap has the largest share first. If several are the largest, the one that has been
// idle longest is first. It implements [heap.Interface].
type shareHeap[K comparable, V any] []*share[K, V]

func (h shareHeap[K, V]) Len() int { return len(h) }

func (h shareHeap[K, V]) Less(i, j int) bool {
	a, b := h[i], h[j]
	if a.count != b.count {
		return a.count > b.count
	}
	return a.used < b.used
}

func (h shareHeap[K, V]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *shareHeap[K, V]) Push(x any) {
	s := x.(*share[K, V])
	s.index = len(*h)
	*h = append(*h, s)
}

func (h *shareHeap[K, V]) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}
