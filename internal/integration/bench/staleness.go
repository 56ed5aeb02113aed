package main

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

const maxStale = time.Second

// The one entity that is changed and watched. The path of its URL is the number of the set.
const (
	watchedClient, watchedEntity = "watched", "e1"
	watchedURL                   = "https://hooks.example.com/"
)

// staleness watches a copy while sets are made through a store on other connections.
func (s settings) staleness(t *testing.T, db database) ([][]string, error) {
	writer := db.open(t, oursPrefix)
	cached, err := cache.New(db.open(t, oursPrefix), &cache.Options{MaxStale: maxStale})
	if err != nil {
		return nil, err
	}
	defer cached.Close()
	ctx, cancel := context.WithTimeout(t.Context(), s.watch+10*maxStale)
	defer cancel()
	var w watch
	written := make(chan int, 1)
	var group errgroup.Group
	group.Go(func() error {
		err := w.write(ctx, writer, s.watch)
		written <- len(w.acknowledged)
		return err
	})
	group.Go(func() error { return w.read(ctx, cached.Store(), written) })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	lags := w.lags()
	return [][]string{{
		"", strconv.Itoa(len(lags)), rounded(quantile(lags, 0.5)), rounded(quantile(lags, 0.99)), rounded(slices.Max(lags)),
		"< " + rounded(milliseconds(maxStale)),
	}}, nil
}

// watch is the record of a writer and a reader of one entity.
type watch struct {
	acknowledged []time.Time // of set n+1, when its Apply returned
	asked        []time.Time // of set n, when the last Resolve that returned it started, or zero
}

// write makes sets at random intervals, so that they do not align with polls: at least one.
func (w *watch) write(ctx context.Context, st webhookcfg.Store, d time.Duration) error {
	for end := time.Now().Add(d); len(w.acknowledged) == 0 || time.Now().Before(end); time.Sleep(rand.N(20 * time.Millisecond)) {
		url := egress.NewURL(watchedURL + strconv.Itoa(len(w.acknowledged)+1))
		if err := st.Apply(ctx, webhookcfg.SetChange(watchedClient, webhookcfg.Entity(watchedEntity), url)); err != nil {
			return err
		}
		w.acknowledged = append(w.acknowledged, time.Now())
	}
	return nil
}

// read resolves every millisecond until it finds the last set that was written.
func (w *watch) read(ctx context.Context, st webhookcfg.Store, written <-chan int) error {
	last := math.MaxInt // unknown yet
	for ; ; time.Sleep(time.Millisecond) {
		n, err := w.ask(ctx, st)
		if err != nil || n >= last {
			return err
		}
		select {
		case last = <-written:
		default:
		}
	}
}

// ask returns the number of the set that is found.
func (w *watch) ask(ctx context.Context, st webhookcfg.Store) (n int, err error) {
	asked := time.Now()
	hook, err := st.Resolve(ctx, watchedClient, watchedEntity)
	if err != nil {
		return 0, err
	}
	if !hook.URL.IsZero() {
		if n, err = strconv.Atoi(strings.TrimPrefix(hook.URL.Reveal(), watchedURL)); err != nil {
			return 0, err
		}
	}
	for len(w.asked) <= n {
		w.asked = append(w.asked, time.Time{})
	}
	w.asked[n] = asked
	return n, nil
}

// lags returns for each set how many milliseconds after its acknowledgement the last
// Resolve started that still returned an older one, or 0.
func (w *watch) lags() (lags []float64) {
	var last time.Time // Resolve that returned a set older than n
	for n, acknowledged := range w.acknowledged {
		if n < len(w.asked) && w.asked[n].After(last) {
			last = w.asked[n]
		}
		lags = append(lags, max(0, milliseconds(last.Sub(acknowledged))))
	}
	return lags
}
