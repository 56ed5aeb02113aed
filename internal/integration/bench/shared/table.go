package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// table is what is measured on every backend.
type table struct {
	name   string
	header []string
	// measure returns the rows of a backend, the first cell of which follows its name.
	measure func(settings, *testing.T, database) (rows [][]string, err error)
	rows    [][]string
}

func tables() []*table {
	return []*table{
		{name: "sets", header: []string{"sets/s", "store", "bare client", "ratio", "budget"}, measure: settings.sets},
		{name: "resolves", header: []string{"resolves/s", "store", "bare client", "ratio", "budget"}, measure: settings.resolves},
		{name: "set-all", header: []string{"overrides of the client", "set-all, ms", "set of one, median of 50, ms", "ratio", "budget"}, measure: settings.setAll},
		{name: "staleness", header: []string{"cache.Cache, seen after, ms", "sets", "p50", "p99", "worst", "bound"}, measure: settings.staleness},
	}
}

func (t *table) print() {
	if len(t.rows) == 0 {
		return
	}
	printHeader(t.header...)
	for _, row := range t.rows {
		printRow(row...)
	}
}

// printHeader begins a Markdown table.
func printHeader(cells ...string) {
	fmt.Println()
	printRow(cells...)
	fmt.Println(strings.Repeat("|---", len(cells)) + "|")
}

func printRow(cells ...string) { fmt.Println("| " + strings.Join(cells, " | ") + " |") }

func median(values []float64) float64 { return quantile(values, 0.5) }

func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1)+0.5)]
}

// spread is the median of the ratios of what was measured in the same round, with
// the least and the greatest.
func spread(dividends, divisors []float64) string {
	ratios := make([]float64, len(dividends))
	for i := range ratios {
		ratios[i] = dividends[i] / divisors[i]
	}
	return fmt.Sprintf("%.2f (%.2f..%.2f)", median(ratios), slices.Min(ratios), slices.Max(ratios))
}

// grouped writes a number with its thousands apart.
func grouped(n int) string { return fmt.Sprintf("%d,%03d", n/1000, n%1000) }

func rounded(value float64) string { return fmt.Sprintf("%.0f", value) }

func precise(value float64) string { return fmt.Sprintf("%.2f", value) }

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1000 }
