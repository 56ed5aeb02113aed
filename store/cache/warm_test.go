package cache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestWarm: clients that you've read ahead are hits, and stay hits while they're polled. Warm
// doesn't wait for the time of the next poll.
func TestWarm(t *testing.T) {
	for name, tt := range map[string]struct {
		store func(st *counted) webhookcfg.Store
		polls bool
	}{
		"feed": {func(st *counted) webhookcfg.Store { return st }, true},
		"versions": {func(st *counted) webhookcfg.Store {
			return struct {
				versionsFunc
				webhookcfg.Lister
			}{versionsFunc{st, func(_ context.Context, n int) ([]string, error) { return make([]string, n), nil }}, st}
		}, true},
		"neither": {func(st *counted) webhookcfg.Store {
			return struct {
				webhookcfg.Store
				webhookcfg.Lister
			}{st, st}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newCounted()
				var clients []string
				for n := range 1200 {
					clients = append(clients, fmt.Sprint("client ", n))
					hooktest.Apply(t, st, hooktest.SetAll(clients[n], n))
				}
				setMany(t, st, "client 7", 0, 257)
				copied, err := cache.New(tt.store(st), &cache.Options{MaxStale: bound})
				if err != nil {
					t.Fatal(err)
				}
				defer copied.Close()
				started := time.Now()
				if err := copied.Warm(t.Context(), clients); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(started); took > 0 {
					t.Errorf("took %v", took)
				}
				st.want(t, 0, 1200, "to warm")
				if tt.polls {
					time.Sleep(3 * bound)
				}
				for _, client := range clients[8:] {
					resolves(t, copied, st.Memory, client, 5, 7)
				}
				st.want(t, 0, 0, "once warm")
				resolves(t, copied, st.Memory, "client 7", 5, 7)
				st.want(t, 2, 0, "of a client that is too large")
			})
		})
	}
}

// TestWarmReads: Warm uses at most half of the reads, and leaves the rest to callers.
func TestWarmReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, most := 0, 0
		enter := func(n int) {
			mu.Lock()
			defer mu.Unlock()
			running += n
			most = max(most, running)
		}
		copied := copyOf(t, listerFunc{store.NewMemory(), func(context.Context, string) (webhookcfg.Page, error) {
			enter(+1)
			defer enter(-1)
			time.Sleep(bound)
			return webhookcfg.Page{}, nil
		}}, cache.Options{MaxReads: 7})
		if err := copied.Warm(t.Context(), strings.Fields("a b c d e f g h i j")); err != nil || most != 4 {
			t.Errorf("%d concurrent reads, %v", most, err)
		}
	})
}

// TestWarmFails: Warm returns the first error, and does not go on.
func TestWarmFails(t *testing.T) {
	clients := make([]string, 1000)
	for n := range clients {
		clients[n] = fmt.Sprint("client ", n)
	}
	for name, tt := range map[string]struct {
		list     func() error
		canceled bool
		want     error
		reads    uint64 // at most
	}{
		"failed read": {func() error { return errFault }, false, errFault, 8},
		"panic":       {func() error { panic("t0ken") }, false, nil, 8},
		"canceled":    {func() error { return nil }, true, context.Canceled, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory := store.NewMemory()
				copied := copyOf(t, struct {
					listerFunc
					cache.Feed
				}{listerFunc{memory, func(context.Context, string) (webhookcfg.Page, error) {
					return webhookcfg.Page{}, tt.list()
				}}, memory}, cache.Options{})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.canceled {
					cancel()
				}
				err := copied.Warm(ctx, clients)
				if err == nil || !strings.HasPrefix(err.Error(), "cache: ") || tt.want != nil && !errors.Is(err, tt.want) || strings.Contains(err.Error(), "t0ken") {
					t.Errorf("got %v", err)
				}
				if n := copied.Stats().Reads; n > tt.reads {
					t.Errorf("%d reads", n)
				}
			})
		})
	}
	copied, err := cache.New(struct{ webhookcfg.Store }{store.NewMemory()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := copied.Warm(t.Context(), []string{"acme"}); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("without pages: %v", err)
	}
	_ = copied.Close()
	copied, err = cache.New(store.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = copied.Close()
	if err := copied.Warm(t.Context(), []string{"acme"}); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestStats: failures of reads and polls are counted, and the last one is kept.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.pollsFail.Store(true)
		errRead := errors.New("read failed")
		copied := copyOf(t, struct {
			listerFunc
			cache.Feed
		}{listerFunc{s, func(context.Context, string) (webhookcfg.Page, error) { return webhookcfg.Page{}, errRead }}, stagedFeed{s}},
			cache.Options{MaxStale: bound})
		want := cache.Stats{Polls: 1, FailedPolls: 1, LastError: errFault, Age: -1, MaxStale: bound}
		if got := copied.Stats(); got != want {
			t.Errorf("after a poll failed: %+v", got)
		}
		s.pollsFail.Store(false)
		clock := newClock()
		clock.at(30)
		if _, err := copied.Resolve(t.Context(), "acme", "e1"); !errors.Is(err, errRead) {
			t.Error(err)
		}
		want = cache.Stats{
			Misses: 1, Reads: 1, FailedReads: 1, Polls: 2, FailedPolls: 1,
			LastError: errRead, Age: 5 * bound / 100, MaxStale: bound,
		}
		if got := copied.Stats(); got != want {
			t.Errorf("after a read failed: %+v", got)
		}
	})
}
