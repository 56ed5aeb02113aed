package cache_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// counted is a store that counts how it is read.
type counted struct {
	*store.Memory
	reads, pages, rows atomic.Int64
}

func newCounted() *counted { return &counted{Memory: store.NewMemory()} }

func (c *counted) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	c.reads.Add(1)
	return c.Memory.Resolve(ctx, client, entity)
}

func (c *counted) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	c.pages.Add(1)
	page, err := c.Memory.List(ctx, client, after, limit)
	c.rows.Add(int64(len(page.Overrides)))
	return page, err
}

// want checks how often the store was read since the last call.
func (c *counted) want(t *testing.T, reads, pages int64, when string) {
	t.Helper()
	if r, p := c.reads.Swap(0), c.pages.Swap(0); r != reads || p != pages {
		t.Errorf("%s: %d reads and %d pages, want %d and %d", when, r, p, reads, pages)
	}
}

// setMany gives a client overrides for the entities from up to but not including to.
func setMany(t *testing.T, st webhookcfg.Store, client string, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		hooktest.Apply(t, st, hooktest.Set(client, fmt.Sprint("e", n), n))
	}
}

// resolves checks that a client's entities, from up to but not including to, are what they
// are in the store behind the cache.
func resolves(t *testing.T, copied *cache.Cache, memory *store.Memory, client string, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		entity := fmt.Sprint("e", n)
		got, err := copied.Resolve(t.Context(), client, entity)
		want, _ := memory.Resolve(t.Context(), client, entity)
		if err != nil || hooktest.Describe(got) != hooktest.Describe(want) || !got.Since.Equal(want.Since) {
			t.Fatalf("%s/%s is %v, %v, want %v", client, entity, got, err, want)
		}
	}
}

// TestHoldsClients: a page of up to 256 overrides serves all entities, even those without an
// override that nobody asked for. Larger clients are read per entity.
func TestHoldsClients(t *testing.T) {
	for _, tt := range []struct {
		overrides    int
		reads, pages int64
	}{
		{0, 0, 1}, {1, 0, 1}, {256, 0, 1}, {257, 300, 2},
	} {
		t.Run(fmt.Sprint(tt.overrides), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := newCounted()
				copied := copyOf(t, st, cache.Options{MaxStale: bound})
				hooktest.Apply(t, st, hooktest.SetAll("acme", 1000))
				setMany(t, st, "acme", 0, tt.overrides)
				if tt.overrides > 0 {
					hooktest.Apply(t, st, hooktest.Unset("acme", "e0", 1))
				}
				newClock().at(30) // the changes are polled
				resolves(t, copied, st.Memory, "acme", 0, 300)
				st.want(t, tt.reads, tt.pages, "at first")
				resolves(t, copied, st.Memory, "acme", 0, 300)
				st.want(t, 0, 0, "then")
				if stats := copied.Stats(); stats.Hits+stats.Misses != 600 || stats.Misses != uint64(max(tt.reads, 1)) {
					t.Errorf("%d hits and %d misses", stats.Hits, stats.Misses)
				}
			})
		})
	}
}

// TestClientGrows: once a client doesn't fit a page any more, it's read per entity. Some
// reads after it fits again, it's read as a page.
func TestClientGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newCounted()
		setMany(t, st, "acme", 0, 256)
		copied, clock := copyOf(t, st, cache.Options{MaxStale: bound}), newClock()
		resolves(t, copied, st.Memory, "acme", 0, 300)
		st.want(t, 0, 1, "with 256 overrides")

		hooktest.Apply(t, st, hooktest.Set("acme", "e256", 256))
		clock.at(30)
		resolves(t, copied, st.Memory, "acme", 0, 8)
		st.want(t, 8, 0, "changed a moment ago")
		resolves(t, copied, st.Memory, "acme", 8, 9)
		st.want(t, 1, 1, "when a page would pay")
		resolves(t, copied, st.Memory, "acme", 0, 264)
		st.want(t, 255, 0, "known to be too large")
		resolves(t, copied, st.Memory, "acme", 264, 265)
		st.want(t, 1, 1, "after 256 reads")

		hooktest.Apply(t, st, hooktest.SetAll("acme", 1))
		clock.at(60)
		resolves(t, copied, st.Memory, "acme", 0, 300)
		st.want(t, 256, 1, "small again")
		resolves(t, copied, st.Memory, "acme", 0, 1000)
		st.want(t, 0, 0, "held again")
	})
}

// TestBusyClient: a client that changes all the time costs only the rows that you ask for,
// not a page for each change.
func TestBusyClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newCounted()
		setMany(t, st, "acme", 0, 200)
		copied, clock := copyOf(t, st, cache.Options{MaxStale: bound}), newClock()
		resolves(t, copied, st.Memory, "acme", 0, 1)
		st.want(t, 0, 1, "at first")
		for n := range 100 {
			hooktest.Apply(t, st, hooktest.Set("acme", "e1", n))
			clock.at(30 * (n + 1))
			resolves(t, copied, st.Memory, "acme", 0, 5)
		}
		st.want(t, 500, 0, "while it changes")
		resolves(t, copied, st.Memory, "acme", 5, 200)
		st.want(t, 1, 1, "when more is asked for than a page costs")
	})
}

// TestFirstVersionIsNoChange: when the first check of a client's version drops it, the next
// read is a page, because nothing changed.
func TestFirstVersionIsNoChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newCounted()
		setMany(t, st, "acme", 0, 200)
		versions := versionsFunc{st, func(_ context.Context, n int) ([]string, error) { return make([]string, n), nil }}
		copied, clock := copyOf(t, struct {
			versionsFunc
			webhookcfg.Lister
		}{versions, st}, cache.Options{MaxStale: bound}), newClock()
		for n := range 20 {
			clock.at(5 + 30*n)
			resolves(t, copied, st.Memory, "acme", 0, 300)
		}
		st.want(t, 0, 2, "before and after its version was known")
	})
}

// TestVersionsRounds: clients are checked in the same order in each round, so that they don't
// expire while a round takes almost as long as MaxStale.
func TestVersionsRounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newCounted()
		copied := copyOf(t, struct {
			versionsFunc
			webhookcfg.Lister
		}{versionsFunc{st, func(_ context.Context, n int) ([]string, error) {
			time.Sleep(bound / 13) // 12 calls for 3,000 clients
			return make([]string, n), nil
		}}, st}, cache.Options{MaxStale: bound})
		clients := make([]string, 3000)
		for n := range clients {
			clients[n] = fmt.Sprint("client ", n)
		}
		if err := copied.Warm(t.Context(), clients); err != nil {
			t.Fatal(err)
		}
		st.want(t, 0, 3000, "to warm")
		laps := 30
		if *full {
			laps = 100
		}
		for range laps {
			time.Sleep(bound / 10)
			for _, client := range clients {
				if _, err := copied.Resolve(t.Context(), client, "e1"); err != nil {
					t.Fatal(err)
				}
			}
		}
		st.want(t, 0, 0, "while rounds go on")
	})
}

// TestUnsupportedLister: a store that doesn't list after all is read per entity.
func TestUnsupportedLister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newCounted()
		setMany(t, st, "acme", 0, 10)
		copied := copyOf(t, listerFunc{st, func(context.Context, string) (webhookcfg.Page, error) {
			return webhookcfg.Page{}, fmt.Errorf("list: %w", errors.ErrUnsupported)
		}}, cache.Options{MaxStale: bound})
		resolves(t, copied, st.Memory, "acme", 0, 20)
		st.want(t, 20, 0, "without pages")
	})
}

type listerFunc struct {
	webhookcfg.Store
	list func(ctx context.Context, client string) (webhookcfg.Page, error)
}

func (f listerFunc) List(ctx context.Context, client, _ string, _ int) (webhookcfg.Page, error) {
	return f.list(ctx, client)
}

// TestModel compares a cache of 10,000 clients with its store, after each poll. Some clients
// grow and shrink beyond the size of a page.
func TestModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		random := rand.New(rand.NewPCG(1, 2))
		st := newCounted()
		names := make([]string, 10_000)
		for n := range names {
			names[n] = fmt.Sprint("client ", n)
			hooktest.Apply(t, st, hooktest.SetAll(names[n], n))
		}
		crowded := names[:20]
		for n, client := range crowded {
			setMany(t, st, client, 0, 246+n)
		}
		// So small that it evicts all the time.
		copied, clock := copyOf(t, st, cache.Options{MaxStale: bound, MaxBytes: 4 << 20}), newClock()
		pick := func() string {
			if random.IntN(2) == 0 {
				return crowded[random.IntN(len(crowded))]
			}
			return names[random.IntN(len(names))]
		}
		for step := range 1000 {
			for range random.IntN(4) {
				client, entity := pick(), fmt.Sprint("e", random.IntN(300))
				switch random.IntN(20) {
				case 0:
					hooktest.Apply(t, st, hooktest.UnsetAll(client, step))
				case 1:
					hooktest.Apply(t, st, hooktest.SetAll(client, step))
				case 2, 3, 4:
					hooktest.Apply(t, st, hooktest.Unset(client, entity, step))
				default:
					hooktest.Apply(t, st, hooktest.Set(client, entity, step))
				}
			}
			clock.at(30 * (step + 1))
			for range 20 {
				n := random.IntN(310)
				resolves(t, copied, st.Memory, pick(), n, n+1)
			}
			if stats := copied.Stats(); stats.Bytes > 4<<20 {
				t.Fatalf("%d bytes", stats.Bytes)
			}
		}
		stats := copied.Stats()
		t.Logf("%+v, %d reads of entities, %d pages of %d rows", stats, st.reads.Load(), st.pages.Load(), st.rows.Load())
		if stats.Hits < stats.Misses/2 || st.reads.Load() == 0 || st.pages.Load() == 0 {
			t.Errorf("few hits, or no reads of a kind: %+v", stats)
		}
	})
}

// vast is a store of clients that all have so many overrides, made when they are read, so
// that what a cache keeps of them is its own.
type vast struct {
	webhookcfg.Store
	overrides int
}

func (v vast) Resolve(_ context.Context, client, entity string) (webhookcfg.Webhook, error) {
	return webhookcfg.Webhook{URL: hooktest.URL(len(client)), Source: webhookcfg.SourceOverride, Since: time.Unix(1, 0)}, nil
}

type vastLister struct{ vast }

// vastNames are the names of a page's entities. Printing them again for each page takes seconds.
var vastNames = func() (names [1000]string) {
	for n := range names {
		names[n] = fmt.Sprintf("%s %06d", strings.Repeat("e", 30), n)
	}
	return names
}()

func (v vastLister) List(ctx context.Context, client, _ string, limit int) (page webhookcfg.Page, err error) {
	page.Base, _ = v.Resolve(ctx, client, "")
	page.Overrides = make([]webhookcfg.Override, 0, min(limit, v.overrides))
	for n := range min(limit, v.overrides) {
		page.Overrides = append(page.Overrides, webhookcfg.Override{Entity: strings.Clone(vastNames[n]), Webhook: page.Base})
	}
	if v.overrides > limit {
		page.Next = page.Overrides[limit-1].Entity
	}
	return page, nil
}

// TestMemoryIsBounded: a full cache takes no more than MaxBytes, and not much less.
func TestMemoryIsBounded(t *testing.T) {
	// A sample fills a quarter of the space.
	most, part := 4<<20, 1
	if !*full {
		most, part = 1<<20, 4
	}
	for name, tt := range map[string]struct {
		store    webhookcfg.Store
		clients  int
		entities int // that are resolved for each client; -1 means one, of a client with a long name
	}{
		"clients without overrides":   {vastLister{vast{overrides: 0}}, 10_000, 1},
		"clients with few overrides":  {vastLister{vast{overrides: 5}}, 3000, 1},
		"clients with nine overrides": {vastLister{vast{overrides: 9}}, 2250, 1},
		"clients with 113 overrides":  {vastLister{vast{overrides: 113}}, 250, 1},
		"clients with a full page":    {vastLister{vast{overrides: 256}}, 100, 1},
		"one client with a million":   {vastLister{vast{overrides: 1_000_000}}, 1, 20_000},
		"500 clients that are large":  {vastLister{vast{overrides: 1000}}, 500, 30},
		"clients without pages":       {vast{}, 8000, 1},
		"clients with long names":     {vastLister{vast{overrides: 0}}, 3000, -1},
	} {
		t.Run(name, func(t *testing.T) {
			copied, err := cache.New(tt.store, &cache.Options{MaxStale: time.Hour, MaxBytes: most})
			if err != nil {
				t.Fatal(err)
			}
			defer copied.Close()
			before := heap()
			for c := range max(tt.clients/part, 1) {
				name := fmt.Sprintf("client %020d", c)
				if tt.entities < 0 {
					name += strings.Repeat("x", 900)
				}
				entities := max(tt.entities, 1)
				if tt.clients == 1 {
					entities /= part
				}
				for e := range entities {
					if _, err := copied.Resolve(t.Context(), name, fmt.Sprintf("entity %029d", e)); err != nil {
						t.Fatal(err)
					}
				}
			}
			took, stats := heap()-before, copied.Stats()
			t.Logf("%d entries of %d bytes, took %d, %.2f of them", stats.Entries, stats.Bytes, took, float64(took)/float64(stats.Bytes))
			if took > most || stats.Bytes > most || stats.Bytes < most*9/10 || took < most/4 {
				t.Errorf("took %d, by its own count %d, of %d", took, stats.Bytes, most)
			}
		})
	}
}

func heap() int {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one made unreachable
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

// TestEviction: a large client displaces its own entities, but not its only one. Among the
// others, those that were idle longest go.
func TestEviction(t *testing.T) {
	last := 2500 // there is space for less than 2000
	if *full {
		last = 5000
	}
	synctest.Test(t, func(t *testing.T) {
		copied := copyOf(t, vastLister{vast{overrides: 1000}}, cache.Options{MaxStale: time.Hour, MaxBytes: 1 << 20})
		misses := func(client string, from, to int) uint64 {
			before := copied.Stats().Misses
			for n := from; n < to; n++ {
				if _, err := copied.Resolve(t.Context(), client, fmt.Sprint("e", n)); err != nil {
					t.Fatal(err)
				}
			}
			return copied.Stats().Misses - before
		}
		misses("small", 0, 3)
		misses("large", 0, last)
		if n := misses("small", 0, 3); n != 0 {
			t.Errorf("%d entities of the small client were displaced", n)
		}
		if n := misses("large", last-100, last); n != 0 {
			t.Errorf("%d of the last entities of the large client were displaced", n)
		}
		if n := misses("large", 0, 100); n != 100 {
			t.Errorf("%d of the first entities of the large client were displaced, want all", n)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		page, _ := vastLister{}.List(t.Context(), "", "", 1)
		copied := copyOf(t, listerFunc{vast{}, func(_ context.Context, client string) (webhookcfg.Page, error) {
			page.Next = ""
			if client == "large" {
				page.Next = "more"
			}
			return page, nil
		}}, cache.Options{MaxStale: time.Hour, MaxBytes: 1 << 20})
		for n := range last {
			if _, err := copied.Resolve(t.Context(), fmt.Sprint("client ", n), "e1"); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, err := copied.Resolve(t.Context(), "large", "e1"); err != nil {
				t.Fatal(err)
			}
		}
		if stats := copied.Stats(); stats.Hits != 1 {
			t.Errorf("the only entity of a large client was displaced at once: %+v", stats)
		}
	})
	for _, used := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			copied := copyOf(t, struct {
				vastLister
				cache.Feed
			}{vastLister{}, store.NewMemory()}, cache.Options{MaxStale: bound, MaxBytes: 1 << 20})
			resolve := func(client string) {
				if _, err := copied.Resolve(t.Context(), client, "e1"); err != nil {
					t.Fatal(err)
				}
			}
			resolve("first")
			for n := range last {
				time.Sleep(bound / 100)
				resolve(fmt.Sprint("client ", n))
				if used {
					resolve("first")
				}
			}
			before := copied.Stats().Misses
			resolve("first")
			if hit := copied.Stats().Misses == before; hit != used {
				t.Errorf("used %t, held %t", used, hit)
			}
		})
	}
}
