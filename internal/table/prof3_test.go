package table

import (
	"math/rand/v2"
	"testing"
	"time"
	"runtime"
	"strings"
	"syscall"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

func cpu() time.Duration {
	var ru syscall.Rusage
	syscall.Getrusage(0, &ru)
	return time.Duration(ru.Utime.Nano()+ru.Stime.Nano())
}

func TestIns(t *testing.T) {
	u := egress.NewURL("https://x")
	N := 1_000_000
			r := rand.New(rand.NewPCG(1, 2))
			ids := make([]string, N)
			for i := range ids { ids[i] = uuid(r) }
	best := [2]time.Duration{1e18,1e18}
	bestc := [2]time.Duration{1e18,1e18}
	var per float64
	for range 5 {
		for k := range 2 {
			h0 := heap()
			c0 := cpu()
			t0 := time.Now()
			if k == 1 {
				m := map[string]setting{}
				for _, id := range ids { m[strings.Clone(id)] = setting{u, 5} }
			best[k] = min(best[k], time.Since(t0))
			bestc[k] = min(bestc[k], cpu()-c0)
			} else {
				var o ordered[setting]
				for _, id := range ids { o.set(id, setting{u, 5}) }
			best[k] = min(best[k], time.Since(t0))
			bestc[k] = min(bestc[k], cpu()-c0)
			per = float64(heap()-h0)/float64(N)
			runtime.KeepAlive(&o)
			}
		}
	}
	t.Log("ordered", best[0]/time.Duration(N), bestc[0]/time.Duration(N), "map", best[1]/time.Duration(N), bestc[1]/time.Duration(N), "heap", per)
}
