package table

import (
	"math/rand/v2"
	"testing"
	"time"
	"strings"
	"runtime"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestHeap(t *testing.T) {
	u := egress.NewURL("https://x")
	for _, c := range []int{1, 100} {
		for _, N := range []int{1_000_000, 1_200_000} {
			r := rand.New(rand.NewPCG(1, 2))
			ids := make([]string, N)
			for i := range ids { ids[i] = uuid(r) }
			for range 3 {
			trs := make([]ordered[setting], c)
			
			t0 := time.Now()
			for i, id := range ids { trs[i%c].set(id, setting{u, 5}) }
			d0 := time.Since(t0)
			
			trs = make([]ordered[setting], c)
			h0 := heap()
			t0 = time.Now()
			for i, id := range ids { trs[i%c].set(id, setting{u, 5}) }
			d := time.Since(t0)
			h1 := heap()
			over := 0
			for _, tr := range trs { for _, b := range tr.table.buckets { if b.next != nil { over++ } } }
			t.Logf("%d clients %d: insert %v/op, unordered %v heap %.1f B/rec, overflow %d", c, N, d/time.Duration(N),d0/time.Duration(N), float64(h1-h0)/float64(N), over)
			ms := make([]map[string]setting, c)
			for i := range ms { ms[i] = map[string]setting{} }
			runtime.KeepAlive(trs); trs=nil
			h0 = heap()
			t0 = time.Now()
			for i, id := range ids { ms[i%c][strings.Clone(id)] = setting{u, 5} }
			d = time.Since(t0)
			h1 = heap()
			runtime.KeepAlive(ms)
			t.Logf("%d clients %d: map insert %v/op heap %.1f B/rec", c, N, d/time.Duration(N), float64(h1-h0)/float64(N))
			}
		}
	}
}
