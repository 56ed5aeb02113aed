package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/webhookcfg"
)

// busyClient makes sets while the entity of another client is resolved.
const busyClient = "busy"

var quiet = nthSetOf("quiet", 0)

// isolation compares how long resolves take while another client makes many sets with how
// long they take otherwise.
func (s settings) isolation(t *testing.T, db database) ([][]string, error) {
	st := db.open(t, oursPrefix)
	for _, c := range []webhookcfg.Change{quiet, nthSetOf(busyClient, 0)} {
		if err := st.Apply(t.Context(), c); err != nil {
			return nil, err
		}
	}
	many, err := s.disturb(t, st, "200 writers", func(d time.Duration) error { return setBusily(st, 200, d) })
	if err != nil {
		return nil, err
	}
	server, ok := db.(*sqlDatabase)
	if !ok {
		return [][]string{many}, nil
	}
	waiting, err := s.disturb(t, st, "20 writers, locked row", func(d time.Duration) error {
		unlock, err := server.lock(t.Context(), oursPrefix, busyClient)
		if err != nil {
			return err
		}
		unlocked := make(chan error)
		time.AfterFunc(d, func() { unlocked <- unlock() })
		err = setBusily(st, 20, d)
		return errors.Join(err, <-unlocked)
	})
	return [][]string{many, waiting}, err
}

// disturb measures resolves with and without a disturbance, which lasts a given time.
func (s settings) disturb(t *testing.T, st webhookcfg.Store, name string, disturbance func(d time.Duration) error) ([]string, error) {
	d := 3 * s.turn
	var otherwise, meanwhile []turn
	var ratios []float64
	for range s.rounds {
		without, err := resolveQuiet(t.Context(), st, d)
		if err != nil {
			return nil, err
		}
		disturbed := make(chan error)
		go func() { disturbed <- disturbance(d) }()
		with, err := resolveQuiet(t.Context(), st, d)
		if err := errors.Join(err, <-disturbed); err != nil {
			return nil, err
		}
		otherwise, meanwhile = append(otherwise, without), append(meanwhile, with)
		ratios = append(ratios, with.quantile(0.99).Seconds()/without.quantile(0.99).Seconds())
	}
	without, with := join(otherwise), join(meanwhile)
	return []string{
		name, inMilliseconds(without.quantile(0.99)), inMilliseconds(with.quantile(0.99)), inMilliseconds(with.quantile(1)), spread(ratios), "≤ 3",
	}, nil
}

// setBusily makes sets of the busy client.
func setBusily(st webhookcfg.Store, writers int, d time.Duration) error {
	_, err := makeSets(func(ctx context.Context, c webhookcfg.Change) error {
		c.Client = busyClient
		return st.Apply(ctx, c)
	}, writers, new(atomic.Int64), lasting(d))
	return err
}

// resolveQuiet starts a resolve each millisecond, however long the others take: otherwise
// one that waits would hide how many are delayed.
func resolveQuiet(ctx context.Context, st webhookcfg.Store, d time.Duration) (all turn, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour) // as each request has
	defer cancel()
	var mu sync.Mutex
	var group errgroup.Group
	for enough := lasting(d); !enough(); time.Sleep(time.Millisecond) {
		group.Go(func() error {
			start := time.Now()
			hook, err := st.Resolve(ctx, quiet.Client, quiet.Scope.Entity())
			took := time.Since(start)
			mu.Lock()
			defer mu.Unlock()
			all.waits = append(all.waits, took)
			if err == nil && !hook.URL.Equal(quiet.URL) {
				err = fmt.Errorf("%s / %s: another URL", quiet.Client, quiet.Scope.Entity())
			}
			return err
		})
	}
	err = group.Wait()
	return all, err
}
