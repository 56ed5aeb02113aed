package table

import (
	"bytes"
	"iter"
	"slices"
)

// ordered is a map from ids to values that can be walked in the byte order of the
// ids. The hash table finds an entry at once; the order beside it changes only
// when an id comes or goes, and is read only by walks. The zero value is empty.
type ordered[V any] struct {
	table hashTable[V]
	order order
}

func (m *ordered[V]) len() int { return m.table.count }

func (m *ordered[V]) get(id string) (v V, ok bool) {
	h := hashString(id)
	if b, i := m.table.chain(h).find(id, h.tag()); b != nil {
		return b.values[i], true
	}
	return v, false
}

func (m *ordered[V]) set(id string, v V) {
	h := hashString(id)
	if b, i := m.table.chain(h).find(id, h.tag()); b != nil {
		b.values[i] = v
		return
	}
	i := m.order.span(id)
	if m.order.full(i) {
		m.split(i, id)
		i = m.order.span(id)
	}
	m.order.add(i, h)
	m.table.add(id, h, v)
}

func (m *ordered[V]) delete(id string) {
	h := hashString(id)
	b, i := m.table.chain(h).find(id, h.tag())
	switch {
	case b == nil:
	case m.len() == 1:
		*m = ordered[V]{}
	default:
		m.table.remove(b, i)
		m.order.remove(id, h)
	}
}

// after walks the entries whose ids come after the given one. The map must not
// change during the walk.
func (m *ordered[V]) after(id string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for i := m.order.span(id); i < len(m.order.spans); i++ {
			for _, e := range m.span(i) {
				if string(e.id) > id && !yield(string(e.id), e.value()) {
					return
				}
			}
		}
	}
}

// span returns the entries of one span in order.
func (m *ordered[V]) span(i int) []entry[V] {
	all := make([]entry[V], 0, len(m.order.spans[i])*5/4)
	for _, h := range m.order.spans[i] {
		all = m.table.chain(h).tagged(h.tag(), all)
	}
	// Tags also find entries of other spans, and equal tags find the same ones.
	all = slices.DeleteFunc(all, func(e entry[V]) bool { return !m.order.holds(i, e.id) })
	slices.SortFunc(all, func(x, y entry[V]) int { return bytes.Compare(x.id, y.id) })
	return slices.CompactFunc(all, func(x, y entry[V]) bool { return x.bucket == y.bucket && x.index == y.index })
}

// split splits a full span before id is added to it. An id above all of them gets
// a span of its own, so that ids which come in ascending order fill their spans.
func (m *ordered[V]) split(i int, id string) {
	all := m.span(i)
	last := string(all[len(all)-1].id)
	if last < id {
		m.order.replace(i, [][]hash{m.order.spans[i], nil}, []string{bound(last, id)})
		return
	}
	var spans [][]hash
	var bounds []string
	for part := range slices.Chunk(all, spanPart) {
		if len(spans) > 0 {
			bounds = append(bounds, bound(last, string(part[0].id)))
		}
		spans = append(spans, hashes(part))
		last = string(part[len(part)-1].id)
	}
	m.order.replace(i, spans, bounds)
}

func hashes[V any](all []entry[V]) []hash {
	hashes := make([]hash, len(all))
	for i, e := range all {
		hashes[i] = hashBytes(e.id)
	}
	return hashes
}
