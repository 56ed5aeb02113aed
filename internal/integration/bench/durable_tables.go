package main

import (
	"fmt"
	"slices"
)

// printRates prints what each way got done.
func printRates(races []*race) {
	title := fmt.Sprintf("durable sets/s, each store holding %d,000 records", held/1000)
	printHeader(append([]string{title}, headings(races)...)...)
	for i, l := range races[0].lanes {
		printRow(append([]string{l.way.name}, each(races, func(r *race) string {
			return rounded(median(r.lanes[i].rates()))
		})...)...)
	}
}

// printRatios compares the first lane with the best way of each rival.
func printRatios(races []*race) {
	printHeader(slices.Concat([]string{"store.File ÷"}, headings(races), []string{"budget"})...)
	for _, rival := range rivals()[1:] {
		ratios := each(races, func(r *race) string {
			return spread(quotients(r.lanes[0].rates(), r.best(rival.name).rates()))
		})
		printRow(slices.Concat([]string{rival.name}, ratios, []string{rival.budget})...)
	}
}

// printWaits prints how long a set took, and how many of them shared a sync.
func printWaits(races []*race) {
	printHeader(append([]string{"p50 / p99 of a set in ms; syncs per set"}, headings(races)...)...)
	for i, l := range races[0].lanes {
		printRow(append([]string{l.way.name}, each(races, func(r *race) string {
			all := join(r.lanes[i].turns)
			return fmt.Sprintf("%s / %s; %.3f", inMilliseconds(all.quantile(0.5)), inMilliseconds(all.quantile(0.99)),
				float64(all.syncs)/float64(len(all.waits)))
		})...)...)
	}
}

func headings(races []*race) []string {
	return each(races, func(r *race) string {
		return plural(r.writers)
	})
}

func each(races []*race, cell func(*race) string) (cells []string) {
	for _, r := range races {
		cells = append(cells, cell(r))
	}
	return cells
}

// best returns the way of a rival that got most done.
func (r *race) best(rival string) *lane {
	var best *lane
	for _, l := range r.lanes {
		if l.name == rival && (best == nil || median(l.rates()) > median(best.rates())) {
			best = l
		}
	}
	return best
}

func (l *lane) rates() []float64 { return rates(l.turns) }
