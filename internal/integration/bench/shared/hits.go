package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// printHits compares hits of a copy with lookups in a store in memory.
func (s settings) printHits(t *testing.T) {
	var rows [][]string
	for _, entries := range []int{1000, 50_000} {
		name := "a hit among " + grouped(entries)
		if !s.wants(name) {
			continue
		}
		row, err := s.hits(t, entries)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rows = append(rows, append([]string{name}, row...))
	}
	if len(rows) == 0 {
		return
	}
	printHeader("in process", "cache.Cache", "store.Memory", "ratio", "budget", "allocations, ours / reference")
	for _, row := range rows {
		printRow(row...)
	}
}

func (s settings) hits(t *testing.T, entries int) ([]string, error) {
	memory := store.NewMemory()
	for n := range entries {
		if err := memory.Apply(t.Context(), nthSet(n)); err != nil {
			return nil, err
		}
	}
	cached, err := cache.New(memory, nil)
	if err != nil {
		return nil, err
	}
	defer cached.Close()
	names := sampleNames(entries)
	var took [2][]float64
	var allocations [2]int64
	for range s.rounds {
		for i, st := range []webhookcfg.Store{cached.Store(), memory} {
			r := testing.Benchmark(func(b *testing.B) { resolveNames(b, st, names) })
			took[i] = append(took[i], float64(r.T.Nanoseconds())/float64(r.N))
			allocations[i] = max(allocations[i], r.AllocsPerOp())
		}
	}
	if reads := cached.Stats().Reads; reads > 2*uint64(entries) { // the first poll may drop what is there
		return nil, fmt.Errorf("the store was read %d times", reads)
	}
	return []string{
		rounded(median(took[0])) + " ns", rounded(median(took[1])) + " ns", spread(took[0], took[1]), "≤ 1.5",
		fmt.Sprintf("%d / %d", allocations[0], allocations[1]),
	}, nil
}

// sampleNames returns the names of entries by chance, as fresh as they come off the
// wire: with the very strings of a map a comparison would not look at their bytes.
func sampleNames(entries int) [][2]string {
	names := make([][2]string, 1<<16)
	for i := range names {
		n := rand.IntN(entries)
		names[i] = [2]string{strings.Clone(clientName(n)), strings.Clone(entityName(n))}
	}
	return names
}

func resolveNames(b *testing.B, st webhookcfg.Store, names [][2]string) {
	for _, name := range names { // so that all are there
		if _, err := st.Resolve(b.Context(), name[0], name[1]); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour) // as each request has
	defer cancel()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		name := names[i&(len(names)-1)]
		hook, err := st.Resolve(ctx, name[0], name[1])
		if err != nil || hook.Source != webhookcfg.SourceOverride {
			b.Fatal(hook, err)
		}
	}
}
