package auth

import "container/list"

// recent is a map of bounded size: to make room it forgets what was used the longest
// ago. It is not safe for concurrent use.
type recent[K comparable, V any] struct {
	limit int
	byKey map[K]*list.Element
	order list.List // of *recentEntry[K, V], the last used first
}

type recentEntry[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any](limit int) *recent[K, V] {
	return &recent[K, V]{limit: limit, byKey: map[K]*list.Element{}}
}

func (r *recent[K, V]) get(key K) (value V, ok bool) {
	element, ok := r.byKey[key]
	if !ok {
		return value, false
	}
	r.order.MoveToFront(element)
	return element.Value.(*recentEntry[K, V]).value, true
}

func (r *recent[K, V]) put(key K, value V) {
	if element, ok := r.byKey[key]; ok {
		element.Value.(*recentEntry[K, V]).value = value
		r.order.MoveToFront(element)
		return
	}
	if len(r.byKey) >= r.limit {
		r.remove(r.order.Back().Value.(*recentEntry[K, V]).key)
	}
	r.byKey[key] = r.order.PushFront(&recentEntry[K, V]{key, value})
}

func (r *recent[K, V]) remove(key K) {
	if element, ok := r.byKey[key]; ok {
		r.order.Remove(element)
		delete(r.byKey, key)
	}
}

func (r *recent[K, V]) clear() {
	r.order.Init()
	clear(r.byKey)
}
