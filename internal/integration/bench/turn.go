package main

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// turn is what writers got done in some time.
type turn struct {
	took  time.Duration
	waits []time.Duration // how long each set took to be answered
	syncs int64
}

func (t turn) perSecond() float64 { return float64(len(t.waits)) / t.took.Seconds() }

func rates(turns []turn) (perSecond []float64) {
	for _, t := range turns {
		perSecond = append(perSecond, t.perSecond())
	}
	return perSecond
}

// makeSets has writers make sets as fast as they can, until enough is true. Next counts
// the sets made so far, so that none is made twice.
func makeSets(set func(context.Context, webhookcfg.Change) error, writers int, next *atomic.Int64, enough func() bool) (t turn, err error) {
	waits, errs := make([][]time.Duration, writers), make([]error, writers)
	var all sync.WaitGroup
	began := time.Now()
	for w := range writers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // as each request has
			defer cancel()
			for !enough() && errs[w] == nil {
				c := nthSet(int(next.Add(1)))
				asked := time.Now()
				errs[w] = set(ctx, c)
				waits[w] = append(waits[w], time.Since(asked))
			}
		})
	}
	all.Wait()
	t = turn{took: time.Since(began), waits: slices.Concat(waits...)}
	for _, err := range errs {
		if err != nil {
			return t, err
		}
	}
	return t, nil
}

// lasting is enough after some time.
func lasting(d time.Duration) (enough func() bool) {
	end := time.Now().Add(d)
	return func() bool { return !time.Now().Before(end) }
}

// join is several turns as one.
func join(turns []turn) (all turn) {
	for _, t := range turns {
		all.took += t.took
		all.waits = append(all.waits, t.waits...)
		all.syncs += t.syncs
	}
	return all
}

// quantile returns a quantile of the waits.
func (t turn) quantile(q float64) time.Duration {
	if len(t.waits) == 0 {
		return 0
	}
	slices.Sort(t.waits)
	return t.waits[int(q*float64(len(t.waits)-1))]
}
