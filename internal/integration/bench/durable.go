package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
)

// held is how many records each store has before the sets are measured.
const held = 100_000

var writerCounts = []int{1, 8, 64, 256}

// lane is a way to make sets durable, with what it got done.
type lane struct {
	entry
	way   way
	turns []turn
}

// race is all lanes, side by side with one number of writers.
type race struct {
	writers int
	lanes   []*lane
	entries []entry
}

// entry is a store in a race; next is the number of the last set that it has.
type entry struct {
	*contender
	name string
	next *atomic.Int64
}

// durableSets compares the sets that stores make durable, each of a new key.
func durableSets(s settings) error {
	var races []*race
	for _, writers := range writerCounts {
		r := &race{writers: writers}
		races = append(races, r)
		err := s.inFolder(func(dir string) error {
			err := r.open(dir)
			if err == nil {
				err = r.run(s)
			}
			if err == nil {
				err = r.check()
			}
			return errors.Join(err, r.close())
		})
		if err != nil {
			return fmt.Errorf("%d writers: %w", writers, err)
		}
	}
	printRates(races)
	printRatios(races)
	printWaits(races)
	return nil
}

// open opens a store of each rival and puts the same records into it.
func (r *race) open(dir string) error {
	for i, rival := range rivals() {
		dir := filepath.Join(dir, strconv.Itoa(i))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		c, err := rival.open(dir)
		if err != nil {
			return fmt.Errorf("%s: %w", rival.name, err)
		}
		entry := entry{contender: c, name: rival.name, next: new(atomic.Int64)}
		entry.next.Store(held - 1)
		r.entries = append(r.entries, entry)
		if err := c.load(held); err != nil {
			return fmt.Errorf("%s: %w", rival.name, err)
		}
		for _, way := range c.ways {
			r.lanes = append(r.lanes, &lane{entry: entry, way: way})
		}
	}
	return nil
}

// run has the lanes take turns, each time beginning with another one. The stores
// grow by as much as they get done.
func (r *race) run(s settings) error {
	for round := range s.rounds {
		for i := range r.lanes {
			if err := r.lanes[(i+round)%len(r.lanes)].run(r.writers, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *lane) run(writers int, s settings) error {
	runtime.GC() // of what the others left
	before := l.way.syncs()
	t, err := makeSets(l.way.set, writers, l.next, lasting(s.turn))
	t.syncs = l.way.syncs() - before
	l.turns = append(l.turns, t)
	if err != nil {
		return fmt.Errorf("%s: %w", l.way.name, err)
	}
	return nil
}

// check makes sure that each store has what it was told.
func (r *race) check() error {
	for _, e := range r.entries {
		for _, n := range []int{0, held - 1, held, int(e.next.Load())} {
			c := nthSet(n)
			url, err := e.url(c.Client, c.Scope.Entity())
			if err != nil {
				return fmt.Errorf("%s: %w", e.name, err)
			}
			if url != c.URL.Reveal() {
				return fmt.Errorf("%s: set %d is lost", e.name, n)
			}
		}
	}
	return nil
}

func (r *race) close() error {
	var errs []error
	for _, e := range r.entries {
		errs = append(errs, e.contender.close())
	}
	return errors.Join(errs...)
}
