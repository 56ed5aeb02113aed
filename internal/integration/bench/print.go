package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// printHeader begins a Markdown table.
func printHeader(cells ...string) {
	fmt.Println()
	printRow(cells...)
	fmt.Println(strings.Repeat("|---", len(cells)) + "|")
}

func printRow(cells ...string) { fmt.Println("| " + strings.Join(cells, " | ") + " |") }

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// spread is the median of ratios with the least and the greatest.
func spread(ratios []float64) string {
	return fmt.Sprintf("%.2f (%.2f..%.2f)", median(ratios), slices.Min(ratios), slices.Max(ratios))
}

// quotients divides what was measured in the same round.
func quotients(dividends, divisors []float64) []float64 {
	ratios := make([]float64, len(dividends))
	for i := range ratios {
		ratios[i] = dividends[i] / divisors[i]
	}
	return ratios
}

func inMilliseconds(d time.Duration) string {
	decimals := 2
	if d >= 10*time.Millisecond {
		decimals = 0
	}
	return fmt.Sprintf("%.*f", decimals, d.Seconds()*1000)
}

func rounded(rate float64) string { return fmt.Sprintf("%.0f", rate) }

func plural(writers int) string {
	if writers == 1 {
		return "1 writer"
	}
	return fmt.Sprintf("%d writers", writers)
}
