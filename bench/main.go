// Command bench measures the library beside references in the same run and
// prints the ratios as Markdown tables. Only the ratios mean anything: absolute
// figures move with the machine and with whatever else it does.
//
//	go run .
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func main() {
	rounds := flag.Int("rounds", 7, "how often each pair is measured; the median counts")
	benchtime := flag.Duration("benchtime", 300*time.Millisecond, "how long one measurement takes")
	only := flag.String("only", "", "measure only the rows whose name holds this text")
	testing.Init()
	flag.Parse()
	if err := flag.Set("test.benchtime", benchtime.String()); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	fmt.Printf("%s, %s/%s, %d CPUs; medians of %d interleaved rounds\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), *rounds)

	fmt.Print("\n| in process | ours | reference | ratio | budget | allocations, ours / reference |\n|---|---|---|---|---|---|\n")
	for _, pairs := range []func() []pair{handlerPairs, egressPairs, authPairs, storePairs} {
		for _, p := range pairs() {
			if strings.Contains(p.name, *only) {
				fmt.Println(p.measure(*rounds))
			}
		}
	}

	fmt.Print("\n| live heap, 1,000,000 overrides | bytes per record | budget | nested map of strings, no times |\n|---|---|---|---|\n")
	for _, h := range heaps() {
		if strings.Contains(h.name, *only) {
			fmt.Println(h.measure())
		}
	}
}

// pair is one of our operations beside its reference.
type pair struct {
	name            string
	ours, reference side
	budget          float64
}

// side measures one operation once.
type side func() result

type result struct {
	nanoseconds float64
	allocations int64
}

// benchmark measures an operation over and over.
func benchmark(fn func(b *testing.B)) side {
	return func() result {
		r := testing.Benchmark(fn)
		return result{float64(r.T.Nanoseconds()) / float64(r.N), r.AllocsPerOp()}
	}
}

// measure runs both sides in turn, so that what disturbs one disturbs the other.
func (p pair) measure(rounds int) string {
	var ratios, ours, references []float64
	var o, r result
	for range rounds {
		o, r = p.ours(), p.reference()
		ours, references = append(ours, o.nanoseconds), append(references, r.nanoseconds)
		ratios = append(ratios, o.nanoseconds/r.nanoseconds)
	}
	return fmt.Sprintf("| %s | %.0f ns | %.0f ns | %.2f | ≤ %.1f | %d / %d |",
		p.name, median(ours), median(references), median(ratios), p.budget, o.allocations, r.allocations)
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
