package main

import (
	"fmt"
	"strings"
	"testing"
)

// printPairs measures what takes nanoseconds.
func (s settings) printPairs() {
	var rows []string
	for _, pairs := range []func() []pair{handlerPairs, storePairs} {
		for _, p := range pairs() {
			if s.wants(p.name) {
				rows = append(rows, p.measure(s.rounds))
			}
		}
	}
	if len(rows) > 0 {
		printHeader("in process", "ours", "reference", "ratio", "budget", "allocations, ours / reference")
		fmt.Println(strings.Join(rows, "\n"))
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
