package oplog

import (
	"hash/maphash"
	"math/bits"
	"sync/atomic"

	"example.com/go-webhookcfg/webhookcfg"
)

// tally counts changes, also by what they reach. It never tells of fewer than there
// are; as it knows a part of a hash only, it may tell of one where there is none.
type tally struct {
	total  atomic.Int64
	seed   maphash.Seed
	scopes [1 << 14]atomic.Int32
}

// add counts changes n times; n is negative once they are applied.
func (t *tally) add(changes []webhookcfg.Change, n int) {
	for i := range changes {
		c := &changes[i]
		t.scope(c.Client, c.Scope.Entity()).Add(int32(n))
	}
	t.total.Add(int64(n * len(changes)))
}

func (t *tally) isZero() bool { return t.total.Load() == 0 }

// reaches reports whether there may be a change that reaches the entity.
func (t *tally) reaches(client, entity string) bool {
	return !t.isZero() && (t.scope(client, entity).Load() > 0 || t.scope(client, allEntities).Load() > 0)
}

// allEntities is in the place of an entity in changes that reach all.
const allEntities = ""

func (t *tally) scope(client, entity string) *atomic.Int32 {
	h := bits.RotateLeft64(maphash.String(t.seed, client), 1) ^ maphash.String(t.seed, entity)
	return &t.scopes[h%uint64(len(t.scopes))]
}
