package table

import (
	"math/rand/v2"
	"testing"
	"time"
	"runtime"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestIns(t *testing.T) {
	u := egress.NewURL("https://x")
	N := 1_000_000
			r := rand.New(rand.NewPCG(1, 2))
			ids := make([]string, N)
			for i := range ids { ids[i] = uuid(r) }
	best := [3]time.Duration{1e18,1e18,1e18}
	for range 4 {
		for k := range 3 {
			
			runtime.GC()
			t0 := time.Now()
			if k == 2 {
				m := map[string]setting{}
				for _, id := range ids { m[strings.Clone(id)] = setting{u, 5} }
			} else {
				var o ordered[setting]
				for _, id := range ids { o.set(id, setting{u, 5}) }
			}
			best[k] = min(best[k], time.Since(t0))
		}
	}
	t.Log("ordered", best[0]/time.Duration(N), "unordered", best[1]/time.Duration(N), "map", best[2]/time.Duration(N))
}
