package table

import (
	"bytes"
	"iter"
	"slices"
)

// ordered is a map from ids to values that can be walked in the byte order of the
// ids. Its hash table finds an entry at once; the order beside it changes only
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
			entries := m.span(i)
			slices.SortFunc(entries, byID)
			for _, e := range entries {
				if string(e.id) > id && !yield(string(e.id), e.value()) {
					return
				}
			}
		}
	}
}

// span returns the entries of span i, one for each of its hashes.
func (m *ordered[V]) span(i int) []entry[V] {
	hashes := m.order.spans[i]
	entries := make([]entry[V], len(hashes))
	var same []entry[V]
	for k, h := range hashes {
		same = m.table.chain(h).hashed(h, same[:0])
		nth := 0
		if len(same) > 1 { // ids with equal hashes, some perhaps of other spans
			same = slices.DeleteFunc(same, func(e entry[V]) bool { return !m.order.holds(i, e.id) })
			nth = count(hashes[:k], h)
		}
		entries[k] = same[nth]
	}
	return entries
}

// split splits span i before id is added to it.
func (m *ordered[V]) split(i int, id string) {
	entries := m.span(i)
	bounds := cut(entries, []byte(id))
	spans := make([][]hash, len(bounds)+1)
	for k, e := range entries {
		part := 0
		for part < len(bounds) && bounds[part] <= string(e.id) {
			part++
		}
		spans[part] = append(spans[part], m.order.spans[i][k])
	}
	m.order.replace(i, spans, bounds)
}

// cut returns bounds that cut a full span into about equal parts, judged by a
// sample of its entries. An id that comes after all of them gets a part of its
// own, so that ids which arrive in order leave full spans behind.
func cut[V any](entries []entry[V], id []byte) []string {
	if last := slices.MaxFunc(entries, byID).id; bytes.Compare(last, id) < 0 {
		return []string{bound(last, id)}
	}
	const perPart = 8
	var sample []entry[V]
	for i := 0; i < len(entries); i += spanPart / perPart {
		sample = append(sample, entries[i])
	}
	slices.SortFunc(sample, byID)
	var bounds []string
	for i := perPart; i < len(sample); i += perPart {
		bounds = append(bounds, bound(sample[i-1].id, sample[i].id))
	}
	return bounds
}
