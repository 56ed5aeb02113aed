package table

import (
	"bytes"
	"math"
	"slices"
)

// bucketSize is the most entries of a bucket: the tags fill one cache line.
const bucketSize = 64

// bucket is some of the entries of a hash table, each an id and a value. The ids
// lie one after another in ids, the one of values[i] from starts[i] on; so they
// cost no pointers, and no memory but their bytes.
type bucket[V any] struct {
	values []V
	ids    []byte
	next   *bucket[V] // has what found no room here
	tags   [bucketSize]uint8
	starts [bucketSize]uint16
}

// newBucket returns a bucket with copies of the entries and no room to spare.
func newBucket[V any](entries []entry[V]) *bucket[V] {
	size := 0
	for _, e := range entries {
		size += len(e.id)
	}
	b := &bucket[V]{
		values: make([]V, 0, min(len(entries), bucketSize)),
		ids:    make([]byte, 0, size),
	}
	for _, e := range entries {
		b.add(e.id, e.tag(), e.value())
	}
	return b
}

// id returns the id of entry i, valid until the bucket changes.
func (b *bucket[V]) id(i int) []byte {
	if i+1 < len(b.values) {
		return b.ids[b.starts[i]:b.starts[i+1]]
	}
	return b.ids[b.starts[i]:]
}

// find returns where the entry for id is, in b or the buckets behind it; nil if
// there is none.
func (b *bucket[V]) find(id string, tag uint8) (*bucket[V], int) {
	for ; b != nil; b = b.next {
		for i := b.seek(tag, 0); i >= 0; i = b.seek(tag, i+1) {
			if string(b.id(i)) == id {
				return b, i
			}
		}
	}
	return nil, 0
}

// seek returns the first entry from i on that has the tag, -1 if there is none.
func (b *bucket[V]) seek(tag uint8, i int) int {
	found := bytes.IndexByte(b.tags[i:len(b.values)], tag)
	if found < 0 {
		return -1
	}
	return i + found
}

// add adds an entry to b or, if there is no room, to a bucket behind it.
func (b *bucket[V]) add(id []byte, tag uint8, v V) {
	for !b.hasRoom() {
		if b.next == nil {
			b.next = new(bucket[V])
		}
		b = b.next
	}
	i := len(b.values)
	b.tags[i], b.starts[i] = tag, uint16(len(b.ids))
	b.values = append(reserve(b.values, 1), v)
	b.ids = append(reserve(b.ids, len(id)), id...)
}

// hasRoom reports whether one more entry can begin in b; its id may be of any length.
func (b *bucket[V]) hasRoom() bool {
	return len(b.values) < bucketSize && len(b.ids) <= math.MaxUint16
}

// remove removes entry i and closes the gap: a bucket is small.
func (b *bucket[V]) remove(i int) {
	start, size := int(b.starts[i]), len(b.id(i))
	b.ids = tighten(slices.Delete(b.ids, start, start+size))
	b.values = tighten(slices.Delete(b.values, i, i+1))
	copy(b.tags[i:], b.tags[i+1:])
	copy(b.starts[i:], b.starts[i+1:])
	for j := i; j < len(b.values); j++ {
		b.starts[j] -= uint16(size)
	}
}

// reserve makes room for n more elements. It grows a slice by less than append
// would: memory counts for more here than copying.
func reserve[S ~[]E, E any](s S, n int) S {
	need := len(s) + n
	if need <= cap(s) {
		return s
	}
	return append(slices.Grow(S(nil), need+need/5), s...)
}

// tighten gives room back when more than half of it is unused.
func tighten[S ~[]E, E any](s S) S {
	if cap(s) <= 2*len(s)+8 {
		return s
	}
	return slices.Clone(s)
}
