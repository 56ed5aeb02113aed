// Package lru provides a map of bounded size, which owners may share.
package lru

import (
	"container/heap"
	"container/list"
	"iter"
)

// Map is a map that evicts entries while it is too large. Get and Put are uses. It is not
// safe for concurrent use, except that calls of Peek can be concurrent with each other.
// Make one with [New], [NewShared] or [NewSized].
type Map[K comparable, V any] struct {
	limit   int
	owner   func(K) uint64
	sizeOf  func(K, V) int
	size    int                 // of all entries
	byKey   map[K]*list.Element // of *node[K, V]
	byOwner map[uint64]*share
	largest shareHeap
	uses    uint64
}

type node[K comparable, V any] struct {
	key   K
	value V
	size  int
	share *share
}

// share holds the entries of one owner.
type share struct {
	owner uint64
	order list.List // the most recently used entry first
	used  uint64    // the value of Map.uses at the last use
	index int       // in the heap
}

// New returns an empty map of at most limit entries, which must be positive. It evicts the
// least recently used entry.
func New[K comparable, V any](limit int) *Map[K, V] {
	return NewShared[K, V](limit, func(K) uint64 { return 0 })
}

// NewShared is like New, but evicts from the owner with the most entries, so that nobody
// displaces the entries of others by adding as many or more. It evicts the least recently
// used entry of that owner. Of several such owners, it takes the one that was idle longest.
// The function returns the owner of a key, or a hash of it: owners with the same hash count
// as one.
func NewShared[K comparable, V any](limit int, owner func(K) uint64) *Map[K, V] {
	return NewSized(limit, owner, func(K, V) int { return 1 })
}

// NewSized is like NewShared, but limits the sum of the entries' sizes. An entry has the size
// that the function returned when the entry was put.
func NewSized[K comparable, V any](limit int, owner func(K) uint64, sizeOf func(K, V) int) *Map[K, V] {
	m := &Map[K, V]{limit: limit, owner: owner, sizeOf: sizeOf}
	m.Clear()
	return m
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return len(m.byKey) }

// Size returns the sum of the entries' sizes.
func (m *Map[K, V]) Size() int { return m.size }

// All returns the entries, in no particular order, without marking them as used.
func (m *Map[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for key, element := range m.byKey {
			if !yield(key, element.Value.(*node[K, V]).value) {
				return
			}
		}
	}
}

// Peek returns the value of a key without marking it as used.
func (m *Map[K, V]) Peek(key K) (value V, ok bool) {
	element, ok := m.byKey[key]
	if !ok {
		return value, false
	}
	return element.Value.(*node[K, V]).value, true
}

// Get returns the value of a key and marks it as used.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	element, ok := m.byKey[key]
	if !ok {
		return value, false
	}
	return m.use(element).value, true
}

// Put sets the value of a key and marks it as used. It may evict others. An entry larger
// than the limit is not kept.
func (m *Map[K, V]) Put(key K, value V) {
	size := m.sizeOf(key, value)
	if size > m.limit {
		m.Remove(key)
		return
	}
	if element, ok := m.byKey[key]; ok {
		n := m.use(element)
		m.size += size - n.size
		n.value, n.size = value, size
	} else {
		s := m.share(m.owner(key))
		m.byKey[key] = s.order.PushFront(&node[K, V]{key, value, size, s})
		m.size += size
		m.touch(s)
	}
	for m.size > m.limit {
		m.Remove(m.largest[0].order.Back().Value.(*node[K, V]).key)
	}
}

// Remove removes a key if it is present.
func (m *Map[K, V]) Remove(key K) {
	element, ok := m.byKey[key]
	if !ok {
		return
	}
	delete(m.byKey, key)
	n := element.Value.(*node[K, V])
	m.size -= n.size
	s := n.share
	s.order.Remove(element)
	if s.order.Len() > 0 {
		heap.Fix(&m.largest, s.index)
		return
	}
	heap.Remove(&m.largest, s.index)
	delete(m.byOwner, s.owner)
}

// Clear removes all entries, and frees their memory.
func (m *Map[K, V]) Clear() {
	m.byKey, m.byOwner = map[K]*list.Element{}, map[uint64]*share{}
	m.largest, m.size = nil, 0
}

func (m *Map[K, V]) use(element *list.Element) *node[K, V] {
	n := element.Value.(*node[K, V])
	n.share.order.MoveToFront(element)
	m.touch(n.share)
	return n
}

// share returns the share of an owner. A new one is empty.
func (m *Map[K, V]) share(owner uint64) *share {
	s, ok := m.byOwner[owner]
	if !ok {
		s = &share{owner: owner}
		m.byOwner[owner] = s
		heap.Push(&m.largest, s)
	}
	return s
}

// touch marks a share as used, and finds its place again.
func (m *Map[K, V]) touch(s *share) {
	m.uses++
	s.used = m.uses
	heap.Fix(&m.largest, s.index)
}

// shareHeap has the largest share first and, of equal ones, the one that was idle longest.
// It implements [heap.Interface].
type shareHeap []*share

func (h shareHeap) Len() int { return len(h) }

func (h shareHeap) Less(i, j int) bool {
	a, b := h[i], h[j]
	if a.order.Len() != b.order.Len() {
		return a.order.Len() > b.order.Len()
	}
	return a.used < b.used
}

func (h shareHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *shareHeap) Push(x any) {
	s := x.(*share)
	s.index = len(*h)
	*h = append(*h, s)
}

func (h *shareHeap) Pop() any {
	last := len(*h) - 1
	s := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return s
}
