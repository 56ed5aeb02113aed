package table

import (
	"hash/maphash"
	"math/bits"
)

// load is how many entries there are to a bucket: few enough for most buckets to
// have room until they are split.
const load = 44

// hashTable is a hash table that grows and shrinks by one bucket at a time, so
// that no change waits for all entries to move: linear hashing, after W. Litwin,
// "Linear Hashing: A New Tool for File and Table Addressing", 1980. The zero value
// is empty.
type hashTable[V any] struct {
	buckets []*bucket[V]
	count   int
}

// chain returns the first of the buckets that can have entries with the hash, nil
// if there is none.
func (t *hashTable[V]) chain(h hash) *bucket[V] {
	if len(t.buckets) == 0 {
		return nil
	}
	return t.buckets[h.home(len(t.buckets))]
}

// add adds an entry for an id that has none.
func (t *hashTable[V]) add(id string, h hash, v V) {
	if t.count >= load*len(t.buckets) {
		t.grow()
	}
	t.chain(h).add([]byte(id), h.tag(), v)
	t.count++
}

// remove removes entry i of bucket b.
func (t *hashTable[V]) remove(b *bucket[V], i int) {
	b.remove(i)
	t.count--
	if 2*t.count < load*(len(t.buckets)-1) {
		t.shrink()
	}
}

// grow adds a bucket, and moves to it what belongs there from now on.
func (t *hashTable[V]) grow() {
	n := len(t.buckets)
	if n == 0 {
		t.buckets = append(t.buckets, new(bucket[V]))
		return
	}
	stay := make([]entry[V], 0, 2*bucketSize)
	move := make([]entry[V], 0, 2*bucketSize)
	for e := range t.buckets[parent(n)].entries() {
		if hashBytes(e.id).home(n+1) == n {
			move = append(move, e)
		} else {
			stay = append(stay, e)
		}
	}
	t.buckets[parent(n)] = newBucket(stay)
	t.buckets = append(t.buckets, newBucket(move))
}

// shrink takes back the last grow.
func (t *hashTable[V]) shrink() {
	n := len(t.buckets) - 1
	entries := make([]entry[V], 0, 2*bucketSize)
	for _, b := range []int{parent(n), n} {
		for e := range t.buckets[b].entries() {
			entries = append(entries, e)
		}
	}
	t.buckets[parent(n)] = newBucket(entries)
	t.buckets[n] = nil
	t.buckets = tighten(t.buckets[:n])
}

// parent returns the index of the bucket that bucket n was split from.
func parent(n int) int { return n &^ (1 << (bits.Len(uint(n)) - 1)) }

// hash is the hash of an id.
type hash uint32

// seed differs from process to process, so that nobody can choose ids that meet
// in one bucket.
var seed = maphash.MakeSeed()

func hashString(id string) hash { return hash(maphash.String(seed, id)) }
func hashBytes(id []byte) hash  { return hash(maphash.Bytes(seed, id)) }

// tag is the part of the hash by which a bucket tells its entries apart.
func (h hash) tag() uint8 { return uint8(h >> 24) }

// home returns the index of the bucket to which h belongs if there are n.
func (h hash) home(n int) int {
	mask := 1<<bits.Len(uint(n-1)) - 1
	i := int(h) & mask
	if i >= n {
		i &= mask >> 1 // that bucket is not there yet: its parent has the entry
	}
	return i
}
