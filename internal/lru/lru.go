// Package lru provides a map of bounded size.
package lru

import (
	"container/list"
	"sync/atomic"
)

// Map is a map that evicts an entry that was not used recently to make room for
// another. It approximates least recently used by giving each entry a second chance,
// so that a lookup reorders nothing: Get and Len may be called concurrently with each
// other, for example under a read lock, but not concurrently with any other method.
// Make one with [New].
type Map[K comparable, V any] struct {
	limit int
	byKey map[K]*list.Element
	order list.List // of *node[K, V]; the last one is considered first for eviction
}

type node[K comparable, V any] struct {
	key   K
	value V
	used  atomic.Bool // since the node was last at the front
}

// New returns an empty map of at most limit entries. Zero means no limit: then the
// caller decides when to evict, with [Map.Evict].
func New[K comparable, V any](limit int) *Map[K, V] {
	return &Map[K, V]{limit: limit, byKey: map[K]*list.Element{}}
}

// Len returns the number of entries.
func (m *Map[K, V]) Len() int { return len(m.byKey) }

// Get returns the value of a key and marks it as used.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	element, ok := m.byKey[key]
	if !ok {
		return value, false
	}
	n := nodeOf[K, V](element)
	if !n.used.Load() { // a load first: readers of one entry share its cache line
		n.used.Store(true)
	}
	return n.value, true
}

// Put sets the value of a key. A new key may evict another one; an existing key is
// marked as used.
func (m *Map[K, V]) Put(key K, value V) {
	if element, ok := m.byKey[key]; ok {
		n := nodeOf[K, V](element)
		n.value = value
		n.used.Store(true)
		return
	}
	if m.limit > 0 && len(m.byKey) >= m.limit {
		m.Evict()
	}
	m.byKey[key] = m.order.PushFront(&node[K, V]{key: key, value: value})
}

// Evict removes the entry that a new key would replace, and returns it; ok is false if
// the map is empty. Its cost is constant, amortized over the calls of Get and Put.
func (m *Map[K, V]) Evict() (key K, value V, ok bool) {
	element := m.order.Back()
	if element == nil {
		return key, value, false
	}
	for nodeOf[K, V](element).used.Swap(false) {
		m.order.MoveToFront(element)
		element = m.order.Back()
	}
	n := nodeOf[K, V](element)
	m.Remove(n.key)
	return n.key, n.value, true
}

// Remove removes a key if it is present.
func (m *Map[K, V]) Remove(key K) {
	if element, ok := m.byKey[key]; ok {
		m.order.Remove(element)
		delete(m.byKey, key)
	}
}

// Clear removes all entries.
func (m *Map[K, V]) Clear() {
	m.order.Init()
	clear(m.byKey)
}

func nodeOf[K comparable, V any](element *list.Element) *node[K, V] {
	return element.Value.(*node[K, V])
}
