package table

import (
	"bytes"
	"math"
	"slices"
)

// bucketSize is the most entries that one bucket holds. Their tags fill a cache
// line.
const bucketSize = 64

// bucket holds entries of a hash table, each an id with its value. Entry i has
// the value values[i]; its id begins at ids[starts[i]] and ends where the next
// one begins. So an entry costs no pointer but those of its value.
type bucket[V any] struct {
	values []V
	ids    []byte
	next   *bucket[V] // takes what has no room here
	tags   [bucketSize]uint8
	starts [bucketSize]uint16
}

// id returns the id of entry i, valid until the bucket changes.
func (b *bucket[V]) id(i int) []byte {
	if i+1 < len(b.values) {
		return b.ids[b.starts[i]:b.starts[i+1]]
	}
	return b.ids[b.starts[i]:]
}

// seek returns the index of the first entry from i on that has the tag, or -1.
func (b *bucket[V]) seek(tag uint8, i int) int {
	found := bytes.IndexByte(b.tags[i:len(b.values)], tag)
	if found < 0 {
		return -1
	}
	return i + found
}

// find looks for id in b and the buckets behind it. It returns nil if there is
// no such entry.
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

// hasRoom reports whether one more entry fits. A long id may go beyond the
// offsets that starts can tell, but none can begin there.
func (b *bucket[V]) hasRoom() bool {
	return len(b.values) < bucketSize && len(b.ids) <= math.MaxUint16
}

// add adds an entry that is not there yet.
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

// remove removes entry i. A bucket is too small for holes to be worth their while.
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

// reserve makes room for n more elements. Where append would double a slice, it
// adds a sixteenth: memory matters more here than copying.
func reserve[S ~[]E, E any](s S, n int) S {
	need := len(s) + n
	if need <= cap(s) {
		return s
	}
	return append(slices.Grow(S(nil), need+need/16), s...)
}

// tighten gives room back once more than half of it is unused.
func tighten[S ~[]E, E any](s S) S {
	if cap(s) < 2*len(s)+8 {
		return s
	}
	return slices.Clone(s)
}
