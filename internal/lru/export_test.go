package lru

// Owners returns the number of owners that the map keeps track of.
func (m *Map[K, V]) Owners() int { return len(m.byOwner) }
