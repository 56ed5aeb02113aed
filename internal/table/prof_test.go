package table

import (
	"math/rand/v2"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

func BenchmarkInsert(b *testing.B) {
	N := 1_000_000
	r := rand.New(rand.NewPCG(1, 2))
	ids := make([]string, N)
	for i := range ids { ids[i] = uuid(r) }
	u := egress.NewURL("https://x")
	for b.Loop() {
	tr := new(ordered[setting])
	for _, id := range ids { tr.set(id, setting{u, 5}) }
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(N), "ns/insert")
}

func BenchmarkInsertAllocs(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	ids := make([]string, 100_000)
	for i := range ids { ids[i] = uuid(r) }
	u := egress.NewURL("https://x")
	b.ReportAllocs()
	var tr ordered[setting]
	i := 0
	for b.Loop() {
		tr.set(ids[i%len(ids)], setting{u, 5})
		i++
	    if i%len(ids) == 0 { tr = ordered[setting]{} }
	}
}
