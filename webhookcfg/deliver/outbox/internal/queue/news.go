package queue

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"example.com/go-webhookcfg/internal/dialect"
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

// News finds what was enqueued since the last look, by the numbers in the table of notifications: a
// statement that reads a range of its primary key. The zero News finds all there is.
type News struct {
	high int64               // the highest number that was seen
	gaps map[int64]time.Time // numbers below it that weren't, and since when they're missing
	late time.Time           // when all of them were looked for the last time
}

// Start forgets what was seen, and starts after a number. What's below it is left to the survey.
func (n *News) Start(high int64) { *n = News{high: high} }

// Ask returns what to look for: numbers after one, and some below it.
func (n *News) Ask(now time.Time) (after int64, gaps []int64) {
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

// Found takes in the numbers that were found, in order.
func (n *News) Found(numbers []int64, now time.Time) {
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

// Fresh is a notification that was enqueued.
type Fresh struct {
	// Number is its number, and Client whose it is.
	Number int64
	Client string
}

// Fresh reads the next notifications after a number, and those with some numbers below it. IsMore says
// that there are others after them.
func (m *Messages) Fresh(ctx context.Context, after int64, gaps []int64) (all []Fresh, isMore bool, err error) {
	text := `SELECT * FROM (SELECT seq, client FROM {message} WHERE seq > @after ORDER BY seq LIMIT @limit) news`
	if len(gaps) > 0 {
		text += ` UNION ALL SELECT seq, client FROM {message} WHERE ` + m.engine.isHeld
	}
	v := dialect.Values{"after": after, "limit": newsPage, "held": numbers(gaps)}
	n := 0
	err = m.query(ctx, text, v, func(rows *sql.Rows) error {
		var f Fresh
		var client []byte
		err := rows.Scan(&f.Number, &client)
		f.Client = string(client)
		all = append(all, f)
		if f.Number > after {
			n++
		}
		return err
	})
	slices.SortFunc(all, func(a, b Fresh) int { return cmp.Compare(a.Number, b.Number) })
	return all, n == newsPage, err
}
