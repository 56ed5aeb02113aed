package queue

import (
	"maps"
	"slices"
	"time"
)

const (
	// newsPage is how many numbers are read at a time.
	newsPage = 1000
	// Numbers below the highest one that are missing belong to transactions that are open or were rolled
	// back. They're looked for with each poll for gapSoon, then once in gapLater, for gapFor. Who
	// commits even later is found by the survey. There are maxGaps at most, the latest.
	gapSoon  = 2 * time.Second
	gapLater = time.Second
	gapFor   = time.Minute
	maxGaps  = 1000
)

// news finds what was enqueued since the last look, by the numbers in the table of notifications: a
// statement that reads a range of its primary key. The zero news finds all there is.
type news struct {
	high int64               // the highest number that was seen
	gaps map[int64]time.Time // numbers below it that weren't, and since when they're missing
	late time.Time           // when all of them were looked for the last time
}

// startNews returns news that starts after a number. What's far below it is left to the survey.
func startNews(high int64) *news { return &news{high: max(high-maxGaps, 0)} }

// ask returns what to look for: numbers after one, and some below it.
func (n *news) ask(now time.Time) (after int64, gaps []int64) {
	isLate := now.Sub(n.late) >= gapLater
	if isLate {
		n.late = now
	}
	for number, since := range n.gaps {
		switch age := now.Sub(since); {
		case age > gapFor:
			delete(n.gaps, number)
		case isLate || age <= gapSoon:
			gaps = append(gaps, number)
		}
	}
	slices.Sort(gaps)
	return n.high, gaps
}

// saw takes in the numbers that were found, in order.
func (n *news) saw(numbers []int64, now time.Time) {
	if n.gaps == nil {
		n.gaps = make(map[int64]time.Time)
	}
	for _, number := range numbers {
		if number <= n.high {
			delete(n.gaps, number)
			continue
		}
		for missing := max(n.high+1, number-maxGaps); missing < number; missing++ {
			n.gaps[missing] = now
		}
		n.high = number
	}
	if len(n.gaps) <= maxGaps {
		return
	}
	all := slices.Sorted(maps.Keys(n.gaps))
	for _, number := range all[:len(all)-maxGaps] {
		delete(n.gaps, number)
	}
}
