package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

var writerCounts = []int{1, 8, 64, 256}

// race compares all ways to make sets durable, with one number of writers.
type race struct {
	writers int
	stores  []loadedStore
	lanes   []*lane
}

// loadedStore is an open peer that has records. next is the number of its last set.
type loadedStore struct {
	*opened
	name string
	next *atomic.Int64
}

// lane is a way of a store, and its turns.
type lane struct {
	loadedStore
	way   way
	turns []turn
}

// turn has the sets that writers made in some time.
type turn struct {
	took  time.Duration
	waits []time.Duration // of each set
	syncs int64
}

// durableSets compares durable sets. Each has a new key.
func durableSets(s settings, r *report) error {
	var races []*race
	for _, writers := range writerCounts {
		race := &race{writers: writers}
		races = append(races, race)
		err := inTempDir(func(dir string) error {
			err := race.open(dir, s.loaded)
			if err == nil {
				err = race.run(s)
			}
			if err == nil {
				err = race.check(s.loaded)
			}
			return errors.Join(err, race.close())
		})
		if err != nil {
			return fmt.Errorf("%d writers: %w", writers, err)
		}
	}
	r.section("Durable sets", fmt.Sprintf(`Each store holds %s records, and each set is durable when it returns. The minimal log
([minimal.go](minimal.go)) appends checksummed records to a file with group commit, and
keeps a nested map. It's never compacted, recovered or reopened. Pebble, bbolt and SQLite
make sets in their own ways. If a store has several ways, the ratio is to its fastest.`, grouped(s.loaded)))
	r.plot("durable.svg", plotRates(races))
	rateTable(r, races)
	ratioTable(r, races)
	waitTable(r, races)
	return nil
}

// open opens a store of each peer, and loads the same records into all of them.
func (r *race) open(dir string, records int) error {
	for i, p := range peers() {
		dir := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		o, err := p.open(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		st := loadedStore{opened: o, name: p.name, next: new(atomic.Int64)}
		st.next.Store(int64(records - 1))
		r.stores = append(r.stores, st)
		if err := o.load(records); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		for _, way := range o.ways {
			r.lanes = append(r.lanes, &lane{loadedStore: st, way: way})
		}
	}
	return nil
}

// run lets the lanes take turns. In each round, another lane goes first.
func (r *race) run(s settings) error {
	for round := range s.rounds {
		for i := range r.lanes {
			if err := r.lanes[(i+round)%len(r.lanes)].run(r.writers, s.turn); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lane) run(writers int, d time.Duration) error {
	runtime.GC() // collect the other lanes' garbage
	before := l.way.syncs()
	t, err := makeSets(l.way.set, writers, l.next, d)
	t.syncs = l.way.syncs() - before
	l.turns = append(l.turns, t)
	if err != nil {
		return fmt.Errorf("%s: %w", l.way.name, err)
	}
	return nil
}

// check verifies that no store lost a set.
func (r *race) check(records int) error {
	for _, st := range r.stores {
		for _, n := range []int{0, records - 1, records, int(st.next.Load())} {
			c := nthSet(n)
			url, err := st.url(c.Client, c.Scope.Entity())
			if err != nil {
				return fmt.Errorf("%s: %w", st.name, err)
			}
			if url != c.URL.Reveal() {
				return fmt.Errorf("%s: set %d is lost", st.name, n)
			}
		}
	}
	return nil
}

func (r *race) close() error {
	var errs []error
	for _, st := range r.stores {
		errs = append(errs, st.opened.close())
	}
	return errors.Join(errs...)
}

// best returns the fastest way of a peer.
func (r *race) best(peer string) *lane {
	var best *lane
	for _, l := range r.lanes {
		if l.name == peer && (best == nil || median(rates(l.turns)) > median(rates(best.turns))) {
			best = l
		}
	}
	return best
}

// makeSets lets writers make sets as fast as they can for some time. They take the numbers of
// their sets from next, so no set is made twice.
func makeSets(set func(context.Context, webhookcfg.Change) error, writers int, next *atomic.Int64, d time.Duration) (turn, error) {
	waits, errs := make([][]time.Duration, writers), make([]error, writers)
	var all sync.WaitGroup
	start := time.Now()
	for w := range writers {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Hour) // every request has one
			defer cancel()
			for time.Since(start) < d && errs[w] == nil {
				c := nthSet(int(next.Add(1)))
				before := time.Now()
				errs[w] = set(ctx, c)
				waits[w] = append(waits[w], time.Since(before))
			}
		})
	}
	all.Wait()
	return turn{took: time.Since(start), waits: slices.Concat(waits...)}, errors.Join(errs...)
}

func (t turn) perSecond() float64 { return float64(len(t.waits)) / t.took.Seconds() }

// quantile returns a quantile of the waits.
func (t turn) quantile(q float64) time.Duration {
	if len(t.waits) == 0 {
		return 0
	}
	slices.Sort(t.waits)
	return t.waits[int(q*float64(len(t.waits)-1))]
}

func rates(turns []turn) (perSecond []float64) {
	for _, t := range turns {
		perSecond = append(perSecond, t.perSecond())
	}
	return perSecond
}

// join combines several turns.
func join(turns []turn) (all turn) {
	for _, t := range turns {
		all.took += t.took
		all.waits = append(all.waits, t.waits...)
		all.syncs += t.syncs
	}
	return all
}

// rateTable shows the sets per second of each way.
func rateTable(r *report, races []*race) {
	var rows [][]string
	for i, l := range races[0].lanes {
		rows = append(rows, append([]string{l.way.name}, each(races, func(r *race) string {
			return rounded(median(rates(r.lanes[i].turns)))
		})...))
	}
	r.table(append([]string{"sets/s"}, headings(races)...), rows...)
}

// ratioTable compares the first lane with the best way of each peer.
func ratioTable(r *report, races []*race) {
	var rows [][]string
	for _, p := range peers()[1:] {
		ratios := each(races, func(r *race) string {
			return spread(quotients(rates(r.lanes[0].turns), rates(r.best(p.name).turns)))
		})
		rows = append(rows, slices.Concat([]string{p.name}, ratios, []string{p.budget}))
	}
	r.table(slices.Concat([]string{"store.File ÷"}, headings(races), []string{"budget"}), rows...)
}

// waitTable shows how long a set took, and how many syncs it needed.
func waitTable(r *report, races []*race) {
	var rows [][]string
	for i, l := range races[0].lanes {
		rows = append(rows, append([]string{l.way.name}, each(races, func(r *race) string {
			all := join(r.lanes[i].turns)
			return fmt.Sprintf("%s / %s; %.3f", inMilliseconds(all.quantile(0.5)), inMilliseconds(all.quantile(0.99)),
				float64(all.syncs)/float64(len(all.waits)))
		})...))
	}
	r.table(append([]string{"p50 / p99 of a set in ms; syncs per set"}, headings(races)...), rows...)
}

func headings(races []*race) []string {
	return each(races, func(r *race) string { return plural(r.writers, "writer") })
}

func each(races []*race, cell func(*race) string) (cells []string) {
	for _, r := range races {
		cells = append(cells, cell(r))
	}
	return cells
}
