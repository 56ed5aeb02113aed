package table

import (
	"hash/maphash"
	"math/bits"
)

// load is how many records there are to a bucket: few enough for most buckets to
// have room until they are split.
const load = 10

// index finds records by the hashes of their ids. It grows and shrinks by one
// bucket at a time, so that no change waits for all records to move: linear
// hashing, after W. Litwin, "Linear Hashing: A New Tool for File and Table
// Addressing", 1980. The zero value is empty.
type index struct {
	buckets  list[bucket]
	overflow list[bucket]
	free     uint32 // the first of a chain of overflow buckets out of use, from 1; 0: none
}

// home returns the first of the buckets that can have records with the hash, nil
// if there is none.
func (x *index) home(h hash) *bucket {
	n := x.buckets.len()
	if n == 0 {
		return nil
	}
	return x.buckets.at(h.home(n))
}

// next returns the bucket behind b, nil if there is none.
func (x *index) next(b *bucket) *bucket {
	if b.overflow == 0 {
		return nil
	}
	return x.overflow.at(b.overflow - 1)
}

// add adds a record to a bucket that is there.
func (x *index) add(h hash, record uint32) {
	b := x.home(h)
	for !b.add(h.tag(), record) {
		if b.overflow == 0 {
			x.extend(h)
			b = x.home(h)
			continue
		}
		b = x.next(b)
	}
}

// extend puts an empty bucket behind the home of the hash, ahead of the others.
func (x *index) extend(h hash) {
	number := x.free
	if number == 0 {
		x.overflow.push(bucket{})
		number = uint32(x.overflow.len())
	}
	b, added := x.home(h), x.overflow.at(number-1)
	x.free = added.overflow
	*added = bucket{overflow: b.overflow}
	b.overflow = number
}

// empty takes all records out of bucket n and out of those behind it, and appends
// them to taken.
func (x *index) empty(n uint32, taken []uint32) []uint32 {
	first := x.buckets.at(n)
	for b := first; b != nil; b = x.next(b) {
		for i, tag := range b.tags {
			if tag != 0 {
				taken = append(taken, b.records[i])
			}
		}
	}
	for first.overflow != 0 {
		number := first.overflow
		b := x.overflow.at(number - 1)
		first.overflow = b.overflow
		*b = bucket{overflow: x.free}
		x.free = number
	}
	*first = bucket{}
	return taken
}

// parent returns the number of the bucket that bucket n was split from.
func parent(n int) uint32 { return uint32(n &^ (1 << (bits.Len(uint(n)) - 1))) }

// hash is the hash of an id.
type hash uint64

// seed differs from process to process, so that nobody can choose ids that meet
// in one bucket.
var seed = maphash.MakeSeed()

func hashString(id string) hash { return hash(maphash.String(seed, id)) }
func hashBytes(id []byte) hash  { return hash(maphash.Bytes(seed, id)) }

// tag is the part of the hash by which a bucket tells its records apart; never 0.
func (h hash) tag() uint8 { return max(1, uint8(h>>56)) }

// home returns the number of the bucket to which h belongs if there are n.
func (h hash) home(n int) uint32 {
	mask := uint32(1)<<bits.Len32(uint32(n-1)) - 1
	i := uint32(h) & mask
	if i >= uint32(n) {
		i &= mask >> 1 // that bucket is not there yet: its parent has the record
	}
	return i
}
