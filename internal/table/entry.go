package table

// entry is a place in a bucket and the id there, valid until the bucket changes.
type entry[V any] struct {
	bucket *bucket[V]
	index  int
	id     []byte
}

func (b *bucket[V]) entry(i int) entry[V] { return entry[V]{b, i, b.id(i)} }

func (e entry[V]) tag() uint8 { return e.bucket.tags[e.index] }
func (e entry[V]) value() V   { return e.bucket.values[e.index] }

// all appends the entries of b and of the buckets behind it.
func (b *bucket[V]) all(entries []entry[V]) []entry[V] {
	for ; b != nil; b = b.next {
		for i := range b.values {
			entries = append(entries, b.entry(i))
		}
	}
	return entries
}

// tagged appends those of them that have the tag.
func (b *bucket[V]) tagged(tag uint8, entries []entry[V]) []entry[V] {
	for ; b != nil; b = b.next {
		for i := b.seek(tag, 0); i >= 0; i = b.seek(tag, i+1) {
			entries = append(entries, b.entry(i))
		}
	}
	return entries
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
