package cache_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// benchNames returns names of clients and entities that share no memory with those in
// the store, as names from a request do not: comparing a string with itself reads no bytes.
func benchNames(b *testing.B, st webhookcfg.Store, n int) (names [][2]string) {
	for i := range n {
		c := benchChange(i)
		if err := st.Apply(b.Context(), c); err != nil {
			b.Fatal(err)
		}
		names = append(names, [2]string{strings.Clone(c.Client), strings.Clone(c.Scope.Entity())})
	}
	return names
}

// BenchmarkHit compares hits with Memory.Resolve, alternating between the two.
func BenchmarkHit(b *testing.B) {
	for _, entries := range []int{1000, 50_000} {
		b.Run(fmt.Sprintf("entries=%d", entries), func(b *testing.B) {
			memory := store.NewMemory()
			names := benchNames(b, memory, entries)
			cached, err := cache.New(memory, &cache.Options{MaxStale: time.Hour})
			if err != nil {
				b.Fatal(err)
			}
			defer cached.Close()
			for cached.Stats().Age < 0 { // the first poll ends in a Reset
				time.Sleep(time.Millisecond)
			}
			stores := []resolving{memory, cached}
			for _, st := range stores {
				resolveAll(b, st, names, 0, len(names))
			}
			before := cached.Stats().Reads
			b.ReportAllocs()
			b.ResetTimer()
			var hits, ratios []float64 // per turn, because other processes disturb some
			const turn = 1000
			for done := 0; done < b.N; done += turn {
				var spent [2]float64
				for i, st := range stores {
					started := time.Now()
					resolveAll(b, st, names, done, turn)
					spent[i] = float64(time.Since(started).Nanoseconds())
				}
				hits = append(hits, spent[1]/turn)
				ratios = append(ratios, spent[1]/spent[0])
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(hits), "ns/hit")
			b.ReportMetric(median(ratios), "of-memory")
			b.ReportMetric(float64(cached.Stats().Reads-before), "misses")
		})
	}
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

type resolving interface {
	Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error)
}

func resolveAll(b *testing.B, st resolving, names [][2]string, from, n int) {
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour) // as each request has
	defer cancel()
	for i := range n {
		name := names[(from+i)%len(names)]
		hook, err := st.Resolve(ctx, name[0], name[1])
		if err != nil || hook.Source != webhookcfg.SourceOverride {
			b.Fatal(hook, err)
		}
	}
}
