package table

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)


func uuid(r *rand.Rand) string {
	a, b := r.Uint64(), r.Uint64()
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", uint32(a), uint16(a>>32), uint16(a>>48), uint16(b), b>>16)
}
func heap() uint64 {
	runtime.GC(); runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestProto(t *testing.T) {
	for _, N := range []int{10_000, 1_000_000} {
	r := rand.New(rand.NewPCG(1, 2))
	ids := make([]string, N)
	for i := range ids { ids[i] = uuid(r) }
	keys := make([]string, 1<<16)
	for i := range keys { b := []byte(ids[r.IntN(N)]); keys[i] = string(b) }
	u := egress.NewURL("https://x")
	h0 := heap()
	tr := new(ordered[setting])
	t0 := time.Now()
	for _, id := range ids { tr.set(id, setting{u, 5}) }
	d := time.Since(t0)
	t.Logf("tree: insert %v/op heap %.1f B/rec, root %d", d/time.Duration(N), float64(heap()-h0)/float64(N), len(tr.table.buckets))
	h0 = heap()
	m := map[string]map[string]string{"c": {}}
	t0 = time.Now()
	for _, id := range ids { mm := m["c"]; mm[string([]byte(id))] = "https://x" }
	d = time.Since(t0)
	t.Logf("map: insert %v/op heap %.1f B/rec", d/time.Duration(N), float64(heap()-h0)/float64(N))
	for round := range 5 {
		t0 = time.Now()
		for range 8 { for _, k := range keys { if _, ok := tr.get(k); !ok { t.Fatal() } } }
		a := time.Since(t0)
		t0 = time.Now()
		for range 8 { for _, k := range keys { if _, ok := m["c"][k]; !ok { t.Fatal() } } }
		b := time.Since(t0)
		t.Log(round, "get tree", a/(8<<16), "map", b/(8<<16), float64(a)/float64(b))
	}
	}
}
