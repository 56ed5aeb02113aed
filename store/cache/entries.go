package cache

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"example.com/go-webhookcfg/webhookcfg"
)

// entries are a table of fixed size in which an entry has a few places where it can
// be, as in the cache of a processor. It can be read while it is written.
type entries struct {
	seeds [2]maphash.Seed
	slots []slot
}

// slot has an entry or nil.
type slot = atomic.Pointer[entry]

// entry is an answer, which may be that there is no webhook. It does not change.
type entry struct {
	of     *copied
	entity entityName
	hook   webhookcfg.Webhook
	began  moment // when the read began
}

// entityName is a name that lies in the entry itself, if it is not longer than a
// UUID, rather than in yet another place in memory.
type entityName struct {
	size int
	text [36]byte
	long string
}

func newEntityName(name string) entityName {
	n := entityName{size: len(name)}
	if copy(n.text[:], name) < len(name) {
		n.long = name
	}
	return n
}

func (n *entityName) is(name string) bool {
	switch {
	case n.size != len(name):
		return false
	case n.size > len(n.text):
		return n.long == name
	}
	return string(n.text[:n.size]) == name
}

// An entry can be in any slot of two groups. Those of a group are in one cache line.
const (
	groupSize = 8
	places    = 2 * groupSize
)

// newEntries returns a table with that many slots, rounded up to a power of two.
func newEntries(size int) entries {
	slots := 1 << bits.Len(uint(max(size, groupSize)-1))
	return entries{[2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, make([]slot, slots)}
}

func (t *entries) hash(client, entity string) uint64 {
	return maphash.String(t.seeds[0], client) ^ maphash.String(t.seeds[1], entity)
}

// place returns the nth slot, of so many places, for an entry with the hash.
func (t *entries) place(hash uint64, n int) *slot {
	at := hash>>(n/groupSize*32) ^ uint64(n%groupSize)
	return &t.slots[at&uint64(len(t.slots)-1)]
}
