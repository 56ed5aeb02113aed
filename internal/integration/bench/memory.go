package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// filled returns a store with this many overrides. The clients get them in turn.
func filled(records, clients, urls int) *store.Memory {
	st := store.NewMemory()
	for n := range records {
		c := nthSetOf(clientName(n%clients), n)
		c.URL = egress.NewURL(nthURL(n % urls))
		if err := st.Apply(context.Background(), c); err != nil {
			panic(err)
		}
	}
	return st
}

// nested returns the same records in a bare nested map, without their times.
func nested(records, clients, urls int) map[string]map[string]string {
	maps := make(map[string]map[string]string)
	for n := range records {
		client := clientName(n % clients)
		if maps[client] == nil {
			maps[client] = make(map[string]string)
		}
		maps[client][nthEntity(n)] = nthURL(n % urls)
	}
	return maps
}

// lookups compares lookups in a store with a bare map.
func lookups(s settings, r *report) error {
	r.section("Lookups", `Random lookups in a store in memory, compared with a bare nested Go map of the same
strings.`)
	s.measurePairs(r, s.resolvePair())
	return nil
}

func (s settings) resolvePair() pair {
	type both struct {
		store  *store.Memory
		nested map[string]map[string]string
		keys   [][2]string
	}
	fill := sync.OnceValue(func() both {
		return both{filled(s.records, clients, s.records), nested(s.records, clients, s.records), sampleKeys(s.records)}
	})
	return pair{
		name: "resolve among " + grouped(s.records),
		ours: benchmark(func(b *testing.B) {
			f := fill()
			resolveKeys(b, f.store, f.keys)
		}),
		reference: benchmark(func(b *testing.B) {
			f := fill()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				key := f.keys[i&(len(f.keys)-1)]
				if url, ok := f.nested[key[0]][key[1]]; !ok || url == "" {
					b.Fatal(key)
				}
			}
		}),
		budget: 1.8,
	}
}

// sampleKeys returns the keys of random records. The strings are new, as in a request: if
// they were the map's own strings, a comparison wouldn't have to read the bytes.
func sampleKeys(records int) [][2]string {
	keys := make([][2]string, 1<<16)
	for i := range keys {
		n := rand.IntN(records)
		keys[i] = [2]string{strings.Clone(clientName(n)), nthEntity(n)}
	}
	return keys
}

func resolveKeys(b *testing.B, st webhookcfg.Store, keys [][2]string) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour) // every request has one
	defer cancel()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		key := keys[i&(len(keys)-1)]
		hook, err := st.Resolve(ctx, key[0], key[1])
		if err != nil || hook.Source != webhookcfg.SourceOverride {
			b.Fatal(hook, err)
		}
	}
}

// liveHeap compares the heap of stores with the heap of a bare nested map.
func liveHeap(s settings, r *report) error {
	r.section("Memory", "Live heap per record, with "+grouped(s.records)+` records. The store in memory has URLs and times. The
nested map has the same strings, but no times.`)
	var rows [][]string
	for _, h := range []struct {
		name          string
		clients, urls int
		budget        string
	}{
		{"distinct URLs, one client", 1, s.records, "≤ 1.25"},
		{"distinct URLs, 100 clients", clients, s.records, "≤ 1.25"},
		{"1,000 shared URLs, one client", 1, 1000, "≤ 0.8"},
		{"1,000 shared URLs, 100 clients", clients, 1000, "≤ 0.8"},
	} {
		ours := heapOf(func() any { return filled(s.records, h.clients, h.urls) }) / float64(s.records)
		reference := heapOf(func() any { return nested(s.records, h.clients, h.urls) }) / float64(s.records)
		rows = append(rows, []string{h.name, rounded(ours) + " B", rounded(reference) + " B", precise(ours / reference), h.budget})
	}
	r.table([]string{"live heap per record", "store.Memory", "nested map", "ratio", "budget"}, rows...)
	return nil
}

// heapOf returns how many bytes of live heap fill's result takes.
func heapOf(fill func() any) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	kept := fill()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(kept)
	return float64(after.HeapAlloc) - float64(before.HeapAlloc)
}
