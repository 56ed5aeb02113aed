// Package lru provides a map of bounded size.
package lru

import "container/list"

// Map is a map that evicts the least recently used entry to make room for another. A
// lookup is a use. It is not safe for concurrent use. Make one with [New].
type Map[K comparable, V any] struct {
	limit int
	byKey map[K]*list.Element
	order list.List // of *node[K, V], the most recently used one first
}

type node[K comparable, V any] struct {
	key   K
	value V
}

// New returns an empty map of at most limit entries, which must be positive.
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
	m.order.MoveToFront(element)
	return element.Value.(*node[K, V]).value, true
}

// Put sets the value of a key and marks it as used. A new key may evict another one.
func (m *Map[K, V]) Put(key K, value V) {
	if element, ok := m.byKey[key]; ok {
		m.order.MoveToFront(element)
		element.Value.(*node[K, V]).value = value
		return
	}
	if len(m.byKey) == m.limit {
		m.Remove(m.order.Back().Value.(*node[K, V]).key)
	}
	m.byKey[key] = m.order.PushFront(&node[K, V]{key: key, value: value})
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
