package table

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func BenchmarkLoad(b *testing.B) {
	const N = 1_000_000
	c, _ := strconv.Atoi(os.Getenv("CLIENTS"))
	urls, _ := strconv.Atoi(os.Getenv("URLS"))
	r := rand.New(rand.NewPCG(1, 2))
	chs := make([]webhookcfg.Change, N)
	for i := range chs {
		n := i
		if urls < N { n = r.IntN(urls) }
		chs[i] = webhookcfg.Set(fmt.Sprintf("client-%03d", i%c), webhookcfg.Entity(uuid(r)), egress.NewURL(fmt.Sprintf("https://hooks.example.com/v1/receivers/%031d", n)))
		chs[i].Time = time.Unix(int64(i), 0)
	}
	for b.Loop() {
		var tb Table
		for _, ch := range chs { tb.Apply(ch) }
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/N, "ns/insert")
}
func BenchmarkLoadMap(b *testing.B) {
	const N = 1_000_000
	c, _ := strconv.Atoi(os.Getenv("CLIENTS"))
	urls, _ := strconv.Atoi(os.Getenv("URLS"))
	r := rand.New(rand.NewPCG(1, 2))
	chs := make([]webhookcfg.Change, N)
	for i := range chs {
		n := i
		if urls < N { n = r.IntN(urls) }
		chs[i] = webhookcfg.Set(fmt.Sprintf("client-%03d", i%c), webhookcfg.Entity(uuid(r)), egress.NewURL(fmt.Sprintf("https://hooks.example.com/v1/receivers/%031d", n)))
		chs[i].Time = time.Unix(int64(i), 0)
	}
	for b.Loop() {
		m := map[string]map[string]string{}
		for _, ch := range chs { 
					mm := m[ch.Client]
					if mm == nil { mm = map[string]string{}; m[ch.Client] = mm }
					mm[ch.Scope.Entity()] = ch.URL.Reveal()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/N, "ns/insert")
}
