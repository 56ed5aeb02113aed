package storetest

import (
	"context"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// benchmarked is how many overrides the client has.
const benchmarked = 500

// Benchmark measures set, by one caller and by many, set-all, resolve and, if the store is a
// Lister, list. Open must return an empty store.
//
// Set-all also reports ns/first, which is the time of a set-all that drops 500 overrides. It
// should be close to ns/op, because the cost must not depend on their number.
func Benchmark(b *testing.B, open func(t testing.TB) webhookcfg.Store) {
	b.Run("set", func(b *testing.B) { benchmarkSet(b, open(b)) })
	b.Run("set-parallel", func(b *testing.B) { benchmarkSetParallel(b, open(b)) })
	b.Run("set-all", func(b *testing.B) { benchmarkSetAll(b, open(b)) })
	b.Run("resolve", func(b *testing.B) { benchmarkResolve(b, open(b)) })
	b.Run("list", func(b *testing.B) { benchmarkList(b, open(b)) })
}

func benchmarkSet(b *testing.B, s webhookcfg.Store) {
	changes := benchmarkChanges()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		mustApply(b, s, changes[n%len(changes)])
	}
}

func benchmarkSetParallel(b *testing.B, s webhookcfg.Store) {
	changes := benchmarkChanges()
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for n := 0; pb.Next(); n++ {
			if err := s.Apply(context.Background(), changes[n%len(changes)]); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func benchmarkSetAll(b *testing.B, s webhookcfg.Store) {
	fillBenchmark(b, s)
	c := webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL(hookURL(0)))
	start := time.Now()
	mustApply(b, s, c)
	first := time.Since(start)
	b.ReportAllocs()
	for b.Loop() {
		mustApply(b, s, c)
	}
	b.ReportMetric(float64(first.Nanoseconds()), "ns/first")
}

func benchmarkResolve(b *testing.B, s webhookcfg.Store) {
	fillBenchmark(b, s)
	changes := benchmarkChanges()
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		entity := changes[n%len(changes)].Scope.Entity()
		hook, err := s.Resolve(context.Background(), client, entity)
		if err != nil || hook.Source != webhookcfg.SourceOverride {
			b.Fatalf("Resolve(%q, %q) returned the source %s and the error %v, want an override", client, entity, hook.Source, err)
		}
	}
}

func benchmarkList(b *testing.B, s webhookcfg.Store) {
	l, ok := s.(webhookcfg.Lister)
	if !ok {
		b.Skipf("%T is not a webhookcfg.Lister", s)
	}
	const limit = 100
	fillBenchmark(b, s)
	b.ReportAllocs()
	for b.Loop() {
		page, err := l.List(context.Background(), client, "e2", limit)
		if err != nil || len(page.Overrides) != limit {
			b.Fatalf("List returned %d overrides and the error %v, want %d overrides", len(page.Overrides), err, limit)
		}
	}
}

func benchmarkChanges() []webhookcfg.Change {
	changes := make([]webhookcfg.Change, benchmarked)
	for n := range changes {
		changes[n] = webhookcfg.SetChange(client, webhookcfg.Entity(entityName(n)), egress.NewURL(hookURL(n)))
		changes[n].Time = timeOf(0)
	}
	return changes
}

func fillBenchmark(b *testing.B, s webhookcfg.Store) {
	b.Helper()
	for _, c := range benchmarkChanges() {
		mustApply(b, s, c)
	}
}

func mustApply(b *testing.B, s webhookcfg.Store, c webhookcfg.Change) {
	if err := s.Apply(context.Background(), c); err != nil {
		b.Fatal(err)
	}
}
