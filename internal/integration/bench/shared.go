package main

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// comparison is a table with rows of every engine.
type comparison struct {
	name   string
	header []string
	// measure returns the rows of an engine, whose name precedes their first cells.
	measure func(settings, *testing.T, database) (rows [][]string, err error)
	rows    [][]string
}

func comparisons() []*comparison {
	return []*comparison{
		{name: "sets", header: []string{"sets/s", "store", "bare client", "ratio", "budget"}, measure: settings.sets},
		{name: "resolves", header: []string{"resolves/s", "store", "bare client", "ratio", "budget"}, measure: settings.resolves},
		{name: "set-all", header: []string{"overrides of the client", "set-all, ms", "set of one, median of 50, ms", "ratio", "budget"}, measure: settings.setAll},
		{name: "isolation", header: []string{"resolve during sets of another client", "p99 otherwise, ms", "p99 meanwhile, ms", "longest meanwhile, ms", "ratio", "budget"}, measure: settings.isolation},
		{name: "transaction", header: []string{"resolves through cache.Cache", "reads", "reads during a transaction in another database", "ratio", "budget"}, measure: settings.transaction},
		{name: "staleness", header: []string{"staleness of cache.Cache, ms", "sets", "p50", "p99", "greatest", "limit"}, measure: settings.staleness},
	}
}

// measureEngines adds the tables of all engines to a report.
func (s settings) measureEngines(t *testing.T, r *report, engines []dbEngine) {
	all := comparisons()
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) { s.measureEngine(t, e, all) })
	}
	if s.only == "" {
		r.section("Engines", `Stores on database engines, and clients that send the same statements, recorded from the
stores ([statements.go](statements.go)), through the same drivers. Every engine waits for the
disk. Staleness is how long after the acknowledgement of a set a copy, with a MaxStale of
1 s, still returned an older URL. One resolve was started each millisecond while another
client made sets in a loop, 200 at a time, or 20 while a transaction of another service
locked its row; and alternately with that while it made none. The copy that resolves during
a transaction polls while nothing changes.`)
	}
	for _, c := range all {
		if len(c.rows) > 0 {
			r.table(c.header, c.rows...)
		}
	}
}

// measureEngine adds the rows of one engine, which is started only if there are some.
func (s settings) measureEngine(t *testing.T, e dbEngine, all []*comparison) {
	var db database
	for _, c := range all {
		if !s.wants(c.name + ", " + e.name) {
			continue
		}
		if db == nil {
			db = e.start(t)
		}
		rows, err := c.measure(s, t, db)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, row := range rows {
			row[0] = strings.TrimSuffix(e.name+", "+row[0], ", ")
			c.rows = append(c.rows, row)
		}
	}
}

// maxCallers is the greatest number of concurrent callers.
const maxCallers = 16

// caller is one side of a comparison, with the calls per second of each round.
type caller struct {
	access    access
	next      atomic.Int64 // the number of the last call
	perSecond []float64
}

// callers returns the store and the bare client with the same entries.
func (s settings) callers(t *testing.T, db database) (both [2]*caller, err error) {
	both[0] = &caller{access: storeAccess{db.open(t, oursPrefix)}}
	both[1] = &caller{access: db.bare(t, barePrefix)}
	for i, prefix := range []string{oursPrefix, barePrefix} {
		if err := s.refill(t, db, prefix); err != nil {
			return both, err
		}
		both[i].next.Store(int64(s.entries))
	}
	return both, nil
}

// refill inserts the entries unless the database already has them.
func (s settings) refill(t *testing.T, db database, prefix string) error {
	st := storeAccess{db.open(t, prefix)}
	last := nthSet(s.entries - 1)
	if url, err := st.url(t.Context(), last.Client, last.Scope.Entity()); err != nil || url != "" {
		return err
	}
	if err := db.fill(t, prefix, s.entries, nthSet); err != nil {
		return err
	}
	for n := range clients { // which creates the clients
		if err := st.set(t.Context(), nthSet(n)); err != nil {
			return err
		}
	}
	return nil
}

// sets compares sets, each of a new entity.
func (s settings) sets(t *testing.T, db database) (rows [][]string, err error) {
	both, err := s.callers(t, db)
	if err != nil {
		return nil, err
	}
	rows, err = s.alternate(t, both, "writer", func(ctx context.Context, c access, n int) error {
		return c.set(ctx, nthSet(n))
	})
	if err != nil {
		return nil, err
	}
	return rows, s.check(t, db, both)
}

// check verifies that a store finds the sets of each side.
func (s settings) check(t *testing.T, db database, both [2]*caller) error {
	for i, prefix := range []string{oursPrefix, barePrefix} {
		st := db.open(t, prefix)
		for _, n := range []int{0, s.entries - 1, s.entries + 1, int(both[i].next.Load())} {
			c := nthSet(n)
			if err := expect(t, st, c.Client, c.Scope.Entity(), webhookcfg.SourceOverride); err != nil {
				return fmt.Errorf("set %d: %w", n, err)
			}
		}
	}
	return nil
}

func expect(t *testing.T, st webhookcfg.Store, client, entity string, want webhookcfg.Source) error {
	hook, err := st.Resolve(t.Context(), client, entity)
	if err == nil && hook.Source != want {
		err = fmt.Errorf("%s / %s: got %s, want %s", client, entity, hook.Source, want)
	}
	return err
}

// resolves compares lookups of entities that have overrides.
func (s settings) resolves(t *testing.T, db database) ([][]string, error) {
	both, err := s.callers(t, db)
	if err != nil {
		return nil, err
	}
	return s.alternate(t, both, "reader", func(ctx context.Context, c access, n int) error {
		n = n * 7919 % s.entries // in no order
		url, err := c.url(ctx, clientName(n), nthEntity(n))
		if err == nil && url != nthURL(n) {
			err = fmt.Errorf("entry %d has the URL %q", n, url)
		}
		return err
	})
}

// alternate has both sides make calls in turn, one at a time and concurrently.
func (s settings) alternate(t *testing.T, both [2]*caller, noun string, call func(context.Context, access, int) error) (rows [][]string, err error) {
	for _, callers := range []int{1, maxCallers} {
		both[0].perSecond, both[1].perSecond = nil, nil
		for round := range s.rounds {
			for i := range both {
				if err := both[(i+round)%2].run(t.Context(), callers, s.turn, call); err != nil {
					return nil, err
				}
			}
		}
		ours, bare := both[0].perSecond, both[1].perSecond
		rows = append(rows, []string{plural(callers, noun), rounded(median(ours)), rounded(median(bare)), spread(quotients(ours, bare)), "≥ 0.9"})
	}
	return rows, nil
}

// run makes calls as fast as possible for some time.
func (l *caller) run(ctx context.Context, callers int, turn time.Duration, call func(context.Context, access, int) error) error {
	runtime.GC() // of the other side's garbage

	ctx, cancel := context.WithTimeout(ctx, time.Hour) // as each request has
	defer cancel()
	var group errgroup.Group
	before, start := l.next.Load(), time.Now()
	for range callers {
		group.Go(func() error {
			for time.Since(start) < turn {
				if err := call(ctx, l.access, int(l.next.Add(1))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	l.perSecond = append(l.perSecond, float64(l.next.Load()-before)/time.Since(start).Seconds())
	return err
}

// setAll compares a set-all over many overrides with the set of one of them, for a new
// client in each round.
func (s settings) setAll(t *testing.T, db database) ([][]string, error) {
	st := db.open(t, oursPrefix)
	var alls, ones []float64
	for round := range s.rounds {
		name := fmt.Sprint("large-client-", round)
		nth := func(n int) webhookcfg.Change { return nthSetOf(name, n) }
		if err := db.fill(t, oursPrefix, s.overrides, nth); err != nil {
			return nil, err
		}
		one, err := setOnes(t, st, nth)
		if err != nil {
			return nil, err
		}
		all, err := setAllOf(t, st, name, nth(s.overrides-1).Scope.Entity())
		if err != nil {
			return nil, err
		}
		alls, ones = append(alls, all), append(ones, one)
	}
	return [][]string{{grouped(s.overrides), precise(median(alls)), precise(median(ones)), spread(quotients(alls, ones)), "≤ 2"}}, nil
}

// setOnes returns how many milliseconds the set of one override takes.
func setOnes(t *testing.T, st webhookcfg.Store, nth func(n int) webhookcfg.Change) (float64, error) {
	var took []float64
	for n := range 50 {
		start := time.Now()
		if err := st.Apply(t.Context(), nth(n)); err != nil {
			return 0, err
		}
		took = append(took, milliseconds(time.Since(start)))
	}
	return median(took), nil
}

// setAllOf returns how many milliseconds a set-all takes, which must drop the last override.
func setAllOf(t *testing.T, st webhookcfg.Store, client, last string) (float64, error) {
	if err := expect(t, st, client, last, webhookcfg.SourceOverride); err != nil {
		return 0, err
	}
	c := webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL(nthURL(0)))
	c.Time = since
	start := time.Now()
	if err := st.Apply(t.Context(), c); err != nil {
		return 0, err
	}
	took := milliseconds(time.Since(start))
	return took, expect(t, st, client, last, webhookcfg.SourceBase)
}
