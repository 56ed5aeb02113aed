package main

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/sealed"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// filled puts this many overrides into a store. The clients get them in turn.
func filled(st webhookcfg.Store, records, clients, urls int) webhookcfg.Store {
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

// lookups compares lookups in a store with a bare map, and those through sealed URLs with those
// of plain ones.
func lookups(s settings, r *report) error {
	r.section("Lookups", `Random lookups in a store in memory, compared with a bare nested Go map of the same
strings, and with lookups of sealed URLs.`)
	keys := sampleKeys(s.records)
	plain := benchmarkResolve(filled(store.NewMemory(), s.records, clients, s.records), keys)
	s.measurePairs(r, pair{"resolve among " + grouped(s.records), plain, benchmarkNested(nested(s.records, clients, s.records), keys), 2.5})

	sealing, err := sealedStore()
	if err != nil {
		return err
	}
	opening := benchmarkResolve(filled(sealing, s.records, clients, s.records), keys)
	var without, with, more []float64
	for range s.rounds {
		p, o := plain().nanoseconds, opening().nanoseconds
		without, with, more = append(without, p), append(with, o), append(more, o-p)
	}
	r.table([]string{"operation", "through store/sealed", "without", "more", "budget"}, []string{
		"resolve among " + grouped(s.records), rounded(median(with)) + " ns", rounded(median(without)) + " ns",
		fmt.Sprintf("%.0f ns (%.0f..%.0f)", median(more), slices.Min(more), slices.Max(more)), "≤ 1,000 ns",
	})
	return nil
}

// sealedStore returns a store in memory with one key for all clients.
func sealedStore() (webhookcfg.Store, error) {
	key, err := sealed.NewKey("2026", bytes.Repeat([]byte{1}, 32))
	if err != nil {
		return nil, err
	}
	keys, err := sealed.SharedKeys(key)
	if err != nil {
		return nil, err
	}
	return sealed.New(store.NewMemory(), keys, nil)
}

func benchmarkResolve(st webhookcfg.Store, keys [][2]string) side {
	return benchmark(func(b *testing.B) {
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
	})
}

func benchmarkNested(urls map[string]map[string]string, keys [][2]string) side {
	return benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			key := keys[i&(len(keys)-1)]
			if url, ok := urls[key[0]][key[1]]; !ok || url == "" {
				b.Fatal(key)
			}
		}
	})
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
		ours := heapOf(func() any { return filled(store.NewMemory(), s.records, h.clients, h.urls) }) / float64(s.records)
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
