package table

import (
	"bytes"
	"iter"
	"slices"
)

// ordered is a map from ids to values that can be walked in the byte order of the
// ids. Its index finds an entry at once; the order beside it changes only when an
// id comes or goes, and is read only by walks. The zero value is empty.
type ordered[V any] struct {
	records records[V]
	index   index
	order   order
}

func (m *ordered[V]) len() int { return m.records.len() }

// get does by itself what find does: a resolve is little else, and to find the record
// twice shows there.
func (m *ordered[V]) get(id string) (v V, ok bool) {
	h := hashString(id)
	tag := h.tag()
	for b := m.index.home(h); b != nil; b = m.index.next(b) {
		for i := range b.tags {
			if b.tags[i] != tag {
				continue
			}
			if r := m.records.at(b.records[i]); m.records.has(r, b.records[i], id) {
				return r.value, true
			}
		}
	}
	return v, false
}

// find returns the place of id in the index, nil if it has none.
func (m *ordered[V]) find(id string, h hash) (*bucket, int) {
	tag := h.tag()
	for b := m.index.home(h); b != nil; b = m.index.next(b) {
		for i := range b.tags {
			if n := b.records[i]; b.tags[i] == tag && m.records.has(m.records.at(n), n, id) {
				return b, i
			}
		}
	}
	return nil, 0
}

func (m *ordered[V]) set(id string, v V) {
	h := hashString(id)
	if b, i := m.find(id, h); b != nil {
		m.records.at(b.records[i]).value = v
		return
	}
	if m.len() >= load*m.index.buckets.len() {
		m.grow()
	}
	record := m.records.add(id, v)
	m.index.add(h, record)
	m.insert(id, record)
}

// insert puts a record in its place in the order.
func (m *ordered[V]) insert(id string, record uint32) {
	i := m.order.span(id)
	if m.order.full(i) {
		m.split(i, id)
		i = m.order.span(id)
	}
	m.order.add(i, record)
}

func (m *ordered[V]) delete(id string) {
	b, i := m.find(id, hashString(id))
	switch {
	case b == nil:
	case m.len() == 1:
		*m = ordered[V]{}
	default:
		record := b.records[i]
		b.tags[i] = 0
		m.order.remove(id, record)
		m.fill(record)
		if 2*m.len() < load*(m.index.buckets.len()-1) {
			m.shrink()
		}
	}
}

// fill closes the gap that a removed record leaves: the last one moves there.
func (m *ordered[V]) fill(gap uint32) {
	last := uint32(m.len() - 1)
	if gap == last {
		m.records.dropLast()
		return
	}
	id := string(m.records.id(last))
	b, i := m.find(id, hashString(id))
	b.records[i] = gap
	m.order.renumber(id, last, gap)
	m.records.moveLast(gap)
}

// grow adds a bucket, and moves to it what belongs there from now on.
func (m *ordered[V]) grow() {
	n := m.index.buckets.len()
	m.index.buckets.push(bucket{})
	if n > 0 {
		var room [4 * slots]uint32
		m.reindex(m.index.empty(parent(n), room[:0]))
	}
}

// shrink takes back the last grow.
func (m *ordered[V]) shrink() {
	n := m.index.buckets.len() - 1
	var room [4 * slots]uint32
	moved := m.index.empty(parent(n), m.index.empty(uint32(n), room[:0]))
	m.index.buckets.pop()
	m.reindex(moved)
}

func (m *ordered[V]) reindex(moved []uint32) {
	var room [4 * slots]hash
	hashes := room[:0]
	for _, record := range moved {
		hashes = append(hashes, hashBytes(m.records.id(record)))
	}
	for i, record := range moved {
		m.index.add(hashes[i], record)
	}
}

// after walks the entries whose ids come after the given one. The map must not
// change during the walk.
func (m *ordered[V]) after(id string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for i := m.order.span(id); i < len(m.order.spans); i++ {
			for _, record := range m.sorted(m.order.spans[i]) {
				entity := string(m.records.id(record))
				if entity > id && !yield(entity, m.records.at(record).value) {
					return
				}
			}
		}
	}
}

// sorted returns the records in the order of their ids.
func (m *ordered[V]) sorted(span []uint32) []uint32 {
	return slices.SortedFunc(slices.Values(span), m.compare)
}

func (m *ordered[V]) compare(x, y uint32) int {
	return bytes.Compare(m.records.id(x), m.records.id(y))
}

// split splits span i before id is added to it.
func (m *ordered[V]) split(i int, id string) {
	span := m.order.spans[i]
	bounds := m.cut(span, id)
	parts := make([][]uint32, len(bounds)+1)
	parts[0] = span[:0] // what is read is ahead of what is written
	for part := range bounds {
		parts[part+1] = make([]uint32, 0, 2*spanPart)
	}
	for _, record := range span {
		part := 0
		for part < len(bounds) && bounds[part] <= string(m.records.id(record)) {
			part++
		}
		parts[part] = append(parts[part], record)
	}
	m.order.replace(i, parts, bounds)
}

// cut returns bounds that cut a full span into about equal parts, judged by a
// sample of its records. An id that comes after all of them gets a part of its
// own, so that ids which arrive in order leave full spans behind.
func (m *ordered[V]) cut(span []uint32, id string) []string {
	if last := m.records.id(slices.MaxFunc(span, m.compare)); string(last) < id {
		return []string{bound(last, []byte(id))}
	}
	const perPart = 8
	var sample []uint32
	for i := 0; i < len(span); i += spanPart / perPart {
		sample = append(sample, span[i])
	}
	sample = m.sorted(sample)
	var bounds []string
	for i := perPart; i < len(sample); i += perPart {
		bounds = append(bounds, bound(m.records.id(sample[i-1]), m.records.id(sample[i])))
	}
	return bounds
}
