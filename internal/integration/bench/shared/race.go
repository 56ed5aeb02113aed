package main

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/webhookcfg"
)

// many is how many callers there are at most.
const many = 16

// lane is one side of a comparison, with what it got done in each round.
type lane struct {
	client    client
	next      atomic.Int64 // number of the last call
	perSecond []float64
}

// lanes are the store and the bare client, filled alike.
func (s settings) lanes(t *testing.T, db database) (both [2]*lane, err error) {
	both[0] = &lane{client: storeClient{db.open(t, oursPrefix)}}
	both[1] = &lane{client: db.bare(t, barePrefix)}
	for i, prefix := range []string{oursPrefix, barePrefix} {
		if err := s.refill(t, db, prefix); err != nil {
			return both, err
		}
		both[i].next.Store(int64(s.held))
	}
	return both, nil
}

// refill gives a database what a race begins with, unless it has that already.
func (s settings) refill(t *testing.T, db database, prefix string) error {
	st := storeClient{db.open(t, prefix)}
	last := nthSet(s.held - 1)
	if url, err := st.url(t.Context(), last.Client, last.Scope.Entity()); err != nil || url != "" {
		return err
	}
	if err := db.fill(t, prefix, s.held, nthSet); err != nil {
		return err
	}
	for n := range clients { // which makes the clients known
		if err := st.set(t.Context(), nthSet(n)); err != nil {
			return err
		}
	}
	return nil
}

// sets compares sets, each of a new entity.
func (s settings) sets(t *testing.T, db database) (rows [][]string, err error) {
	both, err := s.lanes(t, db)
	if err != nil {
		return nil, err
	}
	rows, err = s.race(t, both, "writer", func(ctx context.Context, c client, n int) error {
		return c.set(ctx, nthSet(n))
	})
	if err != nil {
		return nil, err
	}
	return rows, s.check(t, db, both)
}

// check makes sure that a store finds what each side has set.
func (s settings) check(t *testing.T, db database, both [2]*lane) error {
	for i, prefix := range []string{oursPrefix, barePrefix} {
		st := db.open(t, prefix)
		for _, n := range []int{0, s.held - 1, s.held + 1, int(both[i].next.Load())} {
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
	both, err := s.lanes(t, db)
	if err != nil {
		return nil, err
	}
	return s.race(t, both, "reader", func(ctx context.Context, c client, n int) error {
		n = n * 7919 % s.held // in no order
		url, err := c.url(ctx, clientName(n), entityName(n))
		if err == nil && url != hookURL(n) {
			err = fmt.Errorf("entry %d has the URL %q", n, url)
		}
		return err
	})
}

// race has both sides make calls, round by round, with one caller and with many.
func (s settings) race(t *testing.T, both [2]*lane, caller string, call func(context.Context, client, int) error) (rows [][]string, err error) {
	for _, callers := range []int{1, many} {
		both[0].perSecond, both[1].perSecond = nil, nil
		for round := range s.rounds {
			for i := range both {
				if err := both[(i+round)%2].run(t.Context(), callers, s.turn, call); err != nil {
					return nil, err
				}
			}
		}
		ours, bare := both[0].perSecond, both[1].perSecond
		rows = append(rows, []string{plural(callers, caller), rounded(median(ours)), rounded(median(bare)), spread(ours, bare), "≥ 0.9"})
	}
	return rows, nil
}

// run has callers make calls as fast as they can for some time.
func (l *lane) run(ctx context.Context, callers int, turn time.Duration, call func(context.Context, client, int) error) error {
	runtime.GC() // of what the other side left

	ctx, cancel := context.WithTimeout(ctx, time.Hour) // as each request has
	defer cancel()
	var group errgroup.Group
	before, began := l.next.Load(), time.Now()
	for range callers {
		group.Go(func() error {
			for time.Since(began) < turn {
				if err := call(ctx, l.client, int(l.next.Add(1))); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	l.perSecond = append(l.perSecond, float64(l.next.Load()-before)/time.Since(began).Seconds())
	return err
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
