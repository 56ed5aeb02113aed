package main

import (
	"context"
	"fmt"
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

const records = 1_000_000

// entityID makes an id of 36 characters, like a UUID.
func entityID(r *rand.Rand) string {
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", uint32(a), uint16(a>>32), uint16(a>>48), uint16(b), b>>16)
}

// webhookURL makes a URL of 70 characters.
func webhookURL(n int) string { return fmt.Sprintf("https://hooks.example.com/services/%035d", n) }

func clientName(n int) string { return fmt.Sprintf("client-%d", n) }

// filled makes a store with that many overrides, dealt to the clients in turn.
func filled(clients, urls int) (*store.Memory, [][2]string) {
	r := rand.New(rand.NewPCG(1, 2))
	st := store.NewMemory()
	keys := make([][2]string, 0, records)
	for i := range records {
		key := [2]string{clientName(i % clients), entityID(r)}
		apply(st, webhookcfg.Set(key[0], webhookcfg.Entity(key[1]), egress.NewURL(webhookURL(i%urls))))
		keys = append(keys, key)
	}
	return st, keys
}

var since = time.Unix(1767323045, 0)

func apply(st webhookcfg.Store, c webhookcfg.Change) {
	c.Time = since
	if err := st.Apply(context.Background(), c); err != nil {
		panic(err)
	}
}

func storePairs() []pair { return []pair{resolvePair()} }

// lookups is a store and a bare map of the same records, and some of their keys.
type lookups struct {
	store  *store.Memory
	nested map[string]map[string]string
	sample [][2]string
}

func fillLookups() lookups {
	st, keys := filled(clients, records)
	l := lookups{store: st, nested: make(map[string]map[string]string), sample: make([][2]string, 1<<16)}
	for i, key := range keys {
		if l.nested[key[0]] == nil {
			l.nested[key[0]] = make(map[string]string)
		}
		l.nested[key[0]][key[1]] = webhookURL(i)
	}
	for i := range l.sample {
		// Fresh strings, as they come off the wire: with the very strings of the map
		// a comparison would not look at their bytes.
		key := keys[rand.IntN(len(keys))]
		l.sample[i] = [2]string{strings.Clone(key[0]), strings.Clone(key[1])}
	}
	return l
}

func resolvePair() pair {
	ctx := context.Background()
	fill := sync.OnceValue(fillLookups) // only if it is measured
	return pair{
		name: "resolve among 1,000,000, beside a bare nested Go map",
		ours: benchmark(func(b *testing.B) {
			l := fill()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				key := l.sample[i&(len(l.sample)-1)]
				hook, err := l.store.Resolve(ctx, key[0], key[1])
				if err != nil || hook.Source != webhookcfg.SourceOverride {
					b.Fatal(hook, err)
				}
			}
		}),
		reference: benchmark(func(b *testing.B) {
			l := fill()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				key := l.sample[i&(len(l.sample)-1)]
				if url, ok := l.nested[key[0]][key[1]]; !ok || url == "" {
					b.Fatal(key)
				}
			}
		}),
		budget: 1.15,
	}
}

// heap is a way to fill a store, to be weighed.
type heap struct {
	name          string
	clients, urls int
	budget        float64
}

func heaps() []heap {
	return []heap{
		{"distinct URLs, one client", 1, records, 210},
		{"distinct URLs, 100 clients", 100, records, 210},
		{"1,000 shared URLs, one client", 1, 1000, 80},
		{"1,000 shared URLs, 100 clients", 100, 1000, 80},
	}
}

// printHeaps weighs stores.
func (s settings) printHeaps() {
	var rows []string
	for _, h := range heaps() {
		if s.wants(h.name) {
			rows = append(rows, h.measure())
		}
	}
	if len(rows) > 0 {
		printHeader("live heap, 1,000,000 overrides", "bytes per record", "budget", "nested map of strings, no times")
		fmt.Println(strings.Join(rows, "\n"))
	}
}

func (h heap) measure() string {
	ours := weigh(func() any {
		st, _ := filled(h.clients, h.urls)
		return st
	})
	nested := weigh(func() any {
		r := rand.New(rand.NewPCG(1, 2))
		maps := make(map[string]map[string]string)
		for i := range records {
			client := clientName(i % h.clients)
			if maps[client] == nil {
				maps[client] = make(map[string]string)
			}
			maps[client][entityID(r)] = webhookURL(i % h.urls)
		}
		return maps
	})
	return fmt.Sprintf("| %s | %.0f B | ≤ %.0f B | %.0f B |", h.name, ours, h.budget, nested)
}

// weigh returns the live heap of what fill returns, in bytes per record.
func weigh(fill func() any) float64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	filled := fill()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(filled)
	return float64(after.HeapAlloc-before.HeapAlloc) / records
}
