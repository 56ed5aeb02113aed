package etcdstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHistory compares random histories with the list of all changes.
func TestHistory(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		h := history{floor: 10, limit: 1 + random.IntN(8)}
		var all []changed
		for revision := int64(11); revision < 60; revision++ {
			for range random.IntN(3) {
				c := changed{revision, fmt.Sprint("client-", random.IntN(6))}
				all = append(all, c)
				h.add(c.revision, c.client)
			}
			if len(h.changes) > h.limit || h.floor > revision {
				t.Fatalf("seed %d: %d changes with the limit %d, floor %d at %d", seed, len(h.changes), h.limit, h.floor, revision)
			}
			since := 8 + random.Int64N(revision-6)
			got, ok := h.since(since)
			if ok != (since >= h.floor) {
				t.Fatalf("seed %d: since %d with the floor %d: %t", seed, since, h.floor, ok)
			}
			if want := named(all, since); ok && !slices.Equal(got, want) {
				t.Fatalf("seed %d: since %d: %q, want %q", seed, since, got, want)
			}
		}
	}
}

func named(all []changed, since int64) (clients []string) {
	for _, c := range all {
		if c.revision > since {
			clients = append(clients, c.client)
		}
	}
	slices.Sort(clients)
	return slices.Compact(clients)
}
