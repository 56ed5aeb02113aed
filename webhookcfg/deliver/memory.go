package deliver

import (
	"iter"

	"example.com/go-webhookcfg/internal/lru"
)

// memory is what the limiter knows about webhooks or hosts.
type memory[K comparable, V any] struct {
	inUse map[K]*V        // with attempts under way
	idle  *lru.Map[K, *V] // without, but with failures or a pause
}

// newMemory returns an empty memory. The function returns a hash of the client of a key.
func newMemory[K comparable, V any](client func(K) uint64) memory[K, V] {
	return memory[K, V]{make(map[K]*V), lru.NewShared[K, *V](maxIdle, client)}
}

// get returns what's known. Something new is not kept yet.
func (m memory[K, V]) get(key K) *V {
	if v := m.inUse[key]; v != nil {
		return v
	}
	if v, ok := m.idle.Get(key); ok {
		return v
	}
	return new(V)
}

// peek is get, but doesn't count as a use.
func (m memory[K, V]) peek(key K) *V {
	if v := m.inUse[key]; v != nil {
		return v
	}
	if v, ok := m.idle.Peek(key); ok {
		return v
	}
	return new(V)
}

// keep remembers something that has failures or a pause.
func (m memory[K, V]) keep(key K, v *V) {
	if m.inUse[key] == nil {
		m.idle.Put(key, v)
	}
}

// use says that the first attempt, or a further one, is under way.
func (m memory[K, V]) use(key K, v *V) {
	m.idle.Remove(key)
	m.inUse[key] = v
}

// rest says that the last attempt has ended.
func (m memory[K, V]) rest(key K, v *V, isUnwell bool) {
	delete(m.inUse, key)
	if isUnwell {
		m.idle.Put(key, v)
	}
}

// all returns everything in any order.
func (m memory[K, V]) all() iter.Seq2[K, *V] {
	return func(yield func(K, *V) bool) {
		for key, v := range m.inUse {
			if !yield(key, v) {
				return
			}
		}
		for key, v := range m.idle.All() {
			if !yield(key, v) {
				return
			}
		}
	}
}
