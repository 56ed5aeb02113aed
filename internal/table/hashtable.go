package table

import (
	"hash/maphash"
	"math/bits"
)

// load is how many entries a bucket holds on average.
const load = 44

// hash is the hash of an id.
type hash uint32

// seed differs from process to process, so that nobody can choose ids that
// crowd one bucket.
var seed = maphash.MakeSeed()

func hashString(id string) hash { return hash(maphash.String(seed, id)) }
func hashBytes(id []byte) hash  { return hash(maphash.Bytes(seed, id)) }

// tag is the part of the hash that tells the entries of a bucket apart.
func (h hash) tag() uint8 { return uint8(h >> 24) }

// home returns the index of the bucket that the hash belongs to among n.
func (h hash) home(n int) int {
	mask := 1<<bits.Len(uint(n-1)) - 1
	i := int(h) & mask
	if i >= n {
		i &= mask >> 1
	}
	return i
}

// hashTable is a hash table that grows and shrinks by one bucket at a time (linear
// hashing, after W. Litwin, 1980), so that no change ever waits for all entries
// to move. The zero value is empty.
type hashTable[V any] struct {
	buckets []*bucket[V]
	count   int
}

// chain returns the buckets in which entries with the hash are; nil if none are.
func (t *hashTable[V]) chain(h hash) *bucket[V] {
	if t.count == 0 {
		return nil
	}
	return t.buckets[h.home(len(t.buckets))]
}

// add adds an entry that is not there yet.
func (t *hashTable[V]) add(id string, h hash, v V) {
	if t.count >= load*len(t.buckets) {
		t.grow()
	}
	t.count++
	t.chain(h).add([]byte(id), h.tag(), v)
}

// remove removes entry i of bucket b.
func (t *hashTable[V]) remove(b *bucket[V], i int) {
	b.remove(i)
	t.count--
	if 2*t.count < load*(len(t.buckets)-1) {
		t.shrink()
	}
}

// grow adds a bucket, and moves there what belongs into it from now on.
func (t *hashTable[V]) grow() {
	n := len(t.buckets)
	if n == 0 {
		t.buckets = []*bucket[V]{new(bucket[V])}
		return
	}
	stay := make([]entry[V], 0, 2*bucketSize)
	move := make([]entry[V], 0, 2*bucketSize)
	for b := t.buckets[parent(n)]; b != nil; b = b.next {
		for i := range b.values {
			if e := b.entry(i); hashBytes(e.id).home(n+1) == n {
				move = append(move, e)
			} else {
				stay = append(stay, e)
			}
		}
	}
	t.buckets[parent(n)] = newBucket(stay)
	t.buckets = append(t.buckets, newBucket(move))
}

// shrink undoes a grow.
func (t *hashTable[V]) shrink() {
	n := len(t.buckets) - 1
	all := t.buckets[n].all(nil)
	all = t.buckets[parent(n)].all(all)
	t.buckets[parent(n)] = newBucket(all)
	t.buckets[n] = nil
	t.buckets = tighten(t.buckets[:n])
}

// parent returns the index of the bucket that bucket n was split from.
func parent(n int) int { return n &^ (1 << (bits.Len(uint(n)) - 1)) }
