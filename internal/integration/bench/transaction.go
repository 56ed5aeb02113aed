package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// Entities that are resolved through a copy, each of another client, and how often.
const copied, passes = 500, 20

// transaction compares how often a copy reads the store during a transaction of another
// service with how often it does otherwise. Only PostgreSQL has a feed that depends on the
// transactions of others.
func (s settings) transaction(t *testing.T, db database) ([][]string, error) {
	server, ok := db.(*sqlDatabase)
	if !ok || server.driver != "pgx" {
		return nil, nil
	}
	st := db.open(t, oursPrefix)
	otherwise, err := s.readsOfCopy(t.Context(), st)
	if err != nil {
		return nil, err
	}
	end, err := server.beginElsewhere(t)
	if err != nil {
		return nil, err
	}
	during, err := s.readsOfCopy(t.Context(), st)
	if err != nil {
		return nil, err
	}
	ratio := precise(float64(during) / float64(otherwise))
	return [][]string{{grouped(passes * copied), grouped(otherwise), grouped(during), ratio, "≤ 1"}}, end()
}

// readsOfCopy changes clients, and returns how often a new copy then reads the store. It
// polls between the passes over the entities. Only a poll can cause a second read of one,
// since none expires.
func (s settings) readsOfCopy(ctx context.Context, st webhookcfg.Store) (int, error) {
	nth := func(n int) webhookcfg.Change { return nthSetOf(fmt.Sprint("copied-", n), n) }
	group, changing := errgroup.WithContext(ctx)
	group.SetLimit(maxCallers)
	for n := range copied {
		group.Go(func() error { return st.Apply(changing, nth(n)) })
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	pause := s.watch / passes
	c, err := cache.New(st, &cache.Options{MaxStale: time.Hour, PollEvery: pause})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	for c.Stats().Age < 0 { // until the first poll, which drops everything
		time.Sleep(time.Millisecond)
	}
	for range passes {
		for n := range copied {
			if _, err := c.Resolve(ctx, nth(n).Client, nth(n).Scope.Entity()); err != nil {
				return 0, err
			}
		}
		time.Sleep(pause)
	}
	return int(c.Stats().Reads), nil
}
