package table

import (
	"bytes"
	"iter"
)

// entry is a place in a bucket with the id there, valid until the bucket changes.
type entry[V any] struct {
	bucket *bucket[V]
	index  int
	id     []byte
}

func (e entry[V]) tag() uint8 { return e.bucket.tags[e.index] }
func (e entry[V]) value() V   { return e.bucket.values[e.index] }

// byID compares entries by their ids.
func byID[V any](x, y entry[V]) int { return bytes.Compare(x.id, y.id) }

func (b *bucket[V]) entry(i int) entry[V] { return entry[V]{b, i, b.id(i)} }

// entries walks the entries of b and of the buckets behind it.
func (b *bucket[V]) entries() iter.Seq[entry[V]] {
	return func(yield func(entry[V]) bool) {
		for ; b != nil; b = b.next {
			for i := range b.values {
				if !yield(b.entry(i)) {
					return
				}
			}
		}
	}
}

// hashed appends those of them whose ids have the hash.
func (b *bucket[V]) hashed(h hash, entries []entry[V]) []entry[V] {
	for ; b != nil; b = b.next {
		for i := b.seek(h.tag(), 0); i >= 0; i = b.seek(h.tag(), i+1) {
			if e := b.entry(i); hashBytes(e.id) == h {
				entries = append(entries, e)
			}
		}
	}
	return entries
}
