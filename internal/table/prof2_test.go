package table

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
	"runtime"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestFull(t *testing.T) {
	const N = 1_000_000
	for _, c := range []int{1, 100} {
		for _, urls := range []int{N, 1000} {
			var dt, dm time.Duration = 1e18, 1e18
			var bt, bm float64
			for range 2 {
			r := rand.New(rand.NewPCG(1, 2))
			mk := func(i int) (string, string, egress.URL) {
				n := i
				if urls < N { n = r.IntN(urls) }
				return fmt.Sprintf("client-%03d", i%c), uuid(r), egress.NewURL(fmt.Sprintf("https://hooks.example.com/v1/receivers/%031d", n))
			}
			base := heap()
			var tb Table
			var d time.Duration
			for i := 0; i < N; i += 1000 {
				chs := make([]webhookcfg.Change, 1000)
				for j := range chs { cl, e, u := mk(i+j); chs[j] = webhookcfg.Set(cl, webhookcfg.Entity(e), u); chs[j].Time = time.Unix(int64(i), 0) }
				t0 := time.Now()
				for _, ch := range chs { tb.Apply(ch) }
				d += time.Since(t0)
			}
			dt = min(dt, d)
			bt = float64(heap()-base)/N
			runtime.KeepAlive(&tb)
			tb = Table{}
			base = heap()
			m := map[string]map[string]string{}
			d = 0
			for i := 0; i < N; i += 1000 {
				chs := make([]webhookcfg.Change, 1000)
				for j := range chs { cl, e, u := mk(i+j); chs[j] = webhookcfg.Set(cl, webhookcfg.Entity(e), u); chs[j].Time = time.Unix(int64(i), 0) }
				t0 := time.Now()
				for _, ch := range chs {
					mm := m[ch.Client]
					if mm == nil { mm = map[string]string{}; m[ch.Client] = mm }
					mm[ch.Scope.Entity()] = ch.URL.Reveal()
				}
				d += time.Since(t0)
			}
			dm = min(dm, d)
			bm = float64(heap()-base)/N
			runtime.KeepAlive(&m)
			}
			t.Logf("%d clients, %d urls: table %v/op %.1f B; map %v/op %.1f B", c, urls, dt/N, bt, dm/N, bm)
		}
	}
}
