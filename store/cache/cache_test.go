package cache_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// resolver is a store whose Resolve calls a function.
type resolver struct {
	webhookcfg.Store
	resolve func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error)
}

func (r resolver) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	return r.resolve(ctx, client, entity)
}

// follower is a store whose Changes calls a function.
type follower struct {
	webhookcfg.Store
	changes func(ctx context.Context, since string) (cache.Changes, error)
}

func (f follower) Changes(ctx context.Context, since string) (cache.Changes, error) {
	return f.changes(ctx, since)
}

func TestInvalidOptions(t *testing.T) {
	for name, o := range map[string]cache.Options{
		"negative bound":                    {MaxStale: -1},
		"negative bound for failing stores": {StaleIfError: -1},
		"negative size":                     {MaxBytes: -1},
		"a size that is too small":          {MaxBytes: 1<<20 - 1},
		"negative limit of reads":           {MaxReads: -1},
		"a bound that is too short":         {MaxStale: 10*time.Millisecond - 1},
		"a shorter bound for failing":       {MaxStale: time.Second, StaleIfError: time.Second},
		"the shortest bound for failing":    {StaleIfError: 1},
	} {
		if copied, err := cache.New(store.NewMemory(), &o); err == nil {
			t.Errorf("%s: accepted", name)
			_ = copied.Close()
		}
	}
	least := cache.Options{MaxStale: 10 * time.Millisecond, MaxBytes: 1 << 20, MaxReads: 1}
	if copied, err := cache.New(store.NewMemory(), &least); err != nil {
		t.Error(err)
	} else {
		_ = copied.Close()
	}
	if _, err := cache.New(nil, nil); err == nil {
		t.Error("New accepts a nil store")
	}
}

func TestHitDoesNotAllocate(t *testing.T) {
	copied, err := cache.New(struct{ webhookcfg.Store }{store.NewMemory()}, &cache.Options{MaxStale: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	hooktest.Apply(t, copied.Store(), hooktest.SetAll("acme", 1))
	ctx := t.Context()
	for _, client := range []string{"acme", "unknown"} {
		allocations := testing.AllocsPerRun(100, func() {
			if _, err := copied.Resolve(ctx, client, "e1"); err != nil {
				t.Error(err)
			}
		})
		if allocations > 0 {
			t.Errorf("%v allocations for %s", allocations, client)
		}
	}
	if reads := copied.Stats().Reads; reads != 2 {
		t.Errorf("%d reads of two entries, want one each", reads)
	}
}

// TestSharesReads: concurrent callers for one entity share a read. It goes on when one of
// them leaves, and ends with Close.
func TestSharesReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.readTakes.Store(int64(bound))
		copied := copyOf(t, stagedPlain{s}, cache.Options{MaxStale: 10 * bound})
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := copied.Resolve(t.Context(), "acme", "e1"); err != nil {
					t.Error(err)
				}
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), bound/2)
		defer cancel()
		if _, err := copied.Resolve(ctx, "acme", "e1"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller that left got %v", err)
		} else if !strings.HasPrefix(err.Error(), "cache: ") {
			t.Errorf("the error is %q", err)
		}
		all.Wait()
		if reads := s.reads.Load(); reads != 1 {
			t.Errorf("%d reads for concurrent callers, want one", reads)
		}
		started := time.Now()
		ctx, cancel = context.WithTimeout(t.Context(), bound/2)
		defer cancel()
		if _, err := copied.Resolve(ctx, "acme", "e2"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller that left got %v", err)
		}
		_ = copied.Close() // waits for the read
		if took := time.Since(started); took != bound/2 {
			t.Errorf("the read went on for %v", took)
		}
	})
}

// TestReadsAreBounded: a read that hangs ends by itself, since no caller can end it. Callers
// that come after MaxStale, or after half of its time limit, don't wait for it.
func TestReadsAreBounded(t *testing.T) {
	for maxStale, joinable := range map[time.Duration]time.Duration{bound: bound, time.Hour: 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage()
			s.readTakes.Store(int64(time.Hour))
			copied, clock := copyOf(t, stagedPlain{s}, cache.Options{MaxStale: maxStale}), newClock()
			go func() {
				if _, err := copied.Resolve(t.Context(), "acme", "e1"); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a read that hangs: %v", err)
				}
				if took := time.Since(clock.start); took != 20*time.Second {
					t.Errorf("it took %v", took)
				}
			}()
			time.Sleep(joinable + 1)
			s.readTakes.Store(0)
			if _, err := copied.Resolve(t.Context(), "acme", "e1"); err != nil || time.Since(clock.start) > joinable+1 {
				t.Errorf("a later caller, after %v: %v", time.Since(clock.start), err)
			}
			clock.at(2100)
		})
	}
}

// TestCloseWaits: Close waits for the reads and the polls, even if they take a while to
// return.
func TestCloseWaits(t *testing.T) {
	linger := func(ctx context.Context) error {
		<-ctx.Done()
		time.Sleep(bound)
		return ctx.Err()
	}
	reads := resolver{nil, func(ctx context.Context, _, _ string) (webhookcfg.Webhook, error) {
		return webhookcfg.Webhook{}, linger(ctx)
	}}
	polls := follower{store.NewMemory(), func(ctx context.Context, _ string) (cache.Changes, error) {
		return cache.Changes{}, linger(ctx)
	}}
	for _, st := range []webhookcfg.Store{reads, polls} {
		synctest.Test(t, func(t *testing.T) {
			copied := copyOf(t, st, cache.Options{MaxStale: time.Hour})
			go func() { _, _ = copied.Resolve(t.Context(), "acme", "e1") }()
			synctest.Wait()
			started := time.Now()
			if err := copied.Close(); err != nil {
				t.Error(err)
			}
			if took := time.Since(started); took != bound {
				t.Errorf("%T: took %v", st, took)
			}
		})
	}
}

// TestClosedCacheIsEmpty: an entry is not returned after Close.
func TestClosedCacheIsEmpty(t *testing.T) {
	copied, err := cache.New(store.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := copied.Resolve(t.Context(), "acme", "e1"); err != nil {
		t.Error(err)
	}
	_ = copied.Close()
	if _, err := copied.Resolve(t.Context(), "acme", "e1"); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("Resolve after Close: got %v", err)
	}
}

// TestPollsAreBounded: a poll that hangs ends, and the next one can succeed.
func TestPollsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, polls := store.NewMemory(), 0
		copied := copyOf(t, follower{memory, func(ctx context.Context, since string) (cache.Changes, error) {
			if polls++; polls == 1 {
				<-ctx.Done()
				return cache.Changes{}, ctx.Err()
			}
			return memory.Changes(ctx, since)
		}}, cache.Options{MaxStale: bound})
		newClock().at(90)
		if age := copied.Stats().Age; age < 0 || age > bound/2 {
			t.Errorf("the last poll started %v ago", age)
		}
	})
}

// TestNotificationsEnd: a closed channel of notifications causes no polls.
func TestNotificationsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, polls := store.NewMemory(), 0
		copyOf(t, struct {
			follower
			closedNotifier
		}{follower: follower{memory, func(ctx context.Context, since string) (cache.Changes, error) {
			polls++
			return memory.Changes(ctx, since)
		}}}, cache.Options{MaxStale: bound})
		newClock().at(990)
		if polls > 41 {
			t.Errorf("%d polls in the time of 40", polls)
		}
	})
}

type closedNotifier struct{}

func (closedNotifier) Notify(context.Context) <-chan struct{} {
	channel := make(chan struct{})
	close(channel)
	return channel
}

// TestPanics: if the store panics, every waiting caller panics, and the next call starts
// another read.
func TestPanics(t *testing.T) {
	cause := errors.New("a defect")
	for name, fail := range map[string]func(){
		"panic":  func() { panic(cause) },
		"goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				failing := true
				copied := copyOf(t, resolver{nil, func(context.Context, string, string) (webhookcfg.Webhook, error) {
					if time.Sleep(bound); failing {
						fail()
					}
					return webhookcfg.Webhook{}, nil
				}}, cache.Options{})
				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						defer func() {
							if err, ok := recover().(error); ok != (name == "panic") || ok && !errors.Is(err, cause) {
								t.Errorf("the panic is %v", err)
							}
						}()
						if _, err := copied.Resolve(t.Context(), "acme", "e1"); err == nil {
							t.Error("Resolve returned no error though the store failed")
						}
					})
				}
				all.Wait()
				failing = false
				if _, err := copied.Resolve(t.Context(), "acme", "e1"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestClose: callers that wait get ErrClosed, and so do later calls.
func TestClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		s.readTakes.Store(int64(time.Hour))
		copied := copyOf(t, stagedFeed{s}, cache.Options{})
		started := time.Now()
		go func() {
			if _, err := copied.Resolve(t.Context(), "acme", "e1"); !errors.Is(err, cache.ErrClosed) {
				t.Errorf("the waiting caller got %v", err)
			}
		}()
		synctest.Wait()
		for range 2 {
			if err := copied.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := copied.Resolve(t.Context(), "acme", "e1"); !errors.Is(err, cache.ErrClosed) {
			t.Errorf("a later caller got %v", err)
		}
		if err := copied.Store().Apply(t.Context(), hooktest.SetAll("acme", 1)); !errors.Is(err, cache.ErrClosed) {
			t.Errorf("a later change got %v", err)
		}
		if took := time.Since(started); took > 0 {
			t.Errorf("took %v", took)
		}
	})
}

// TestStaleIfError: while the store fails or hangs, entries are valid for longer.
func TestStaleIfError(t *testing.T) {
	for _, hangs := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := newStage()
			failing := false
			st := resolver{s, func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
				if failing && hangs {
					<-ctx.Done()
				}
				if failing {
					return webhookcfg.Webhook{}, errFault
				}
				return s.Resolve(ctx, client, entity)
			}}
			copied := copyOf(t, st, cache.Options{MaxStale: bound, StaleIfError: 10 * bound})
			clock := newClock()
			hooktest.Apply(t, s, hooktest.SetAll("acme", 1))
			expect(t, copied.Store(), 1, "at first")
			hooktest.Apply(t, s, hooktest.SetAll("acme", 2))
			failing = true
			clock.at(850)
			expect(t, copied.Store(), 1, "while the store fails")
			clock.at(999)
			if hangs { // the read times out one bound later
				clock.at(1000)
			}
			_, err := copied.Resolve(t.Context(), "acme", "e1")
			if hangs && err == nil || !hangs && err != nil {
				t.Errorf("when the time is over, hanging %t: %v", hangs, err)
			}
			clock.at(1100)
			if _, err := copied.Resolve(t.Context(), "acme", "e1"); !errors.Is(err, errFault) {
				t.Errorf("after it: %v", err)
			}
			failing = false
			expect(t, copied.Store(), 2, "when the store responds again")
		})
	}
}

// TestKeepsNoErrors: errors aren't cached.
func TestKeepsNoErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		hooktest.Apply(t, s, hooktest.SetAll("acme", 1))
		fails := true
		copied := copyOf(t, resolver{s, func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
			if fails {
				return webhookcfg.Webhook{}, errFault
			}
			return s.Resolve(ctx, client, entity)
		}}, cache.Options{})
		if _, err := copied.Resolve(t.Context(), "acme", "e1"); !errors.Is(err, errFault) {
			t.Error(err)
		}
		fails = false
		expect(t, copied.Store(), 1, "after an error")
	})
}

// TestNotifications: with notifications, a change is visible at once. Many notifications
// don't cause as many polls.
func TestNotifications(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		memory, polls := store.NewMemory(), 0
		st := struct {
			follower
			cache.Notifier
		}{follower{memory, func(ctx context.Context, since string) (cache.Changes, error) {
			polls++
			return memory.Changes(ctx, since)
		}}, memory}
		copied := copyOf(t, st, cache.Options{MaxStale: 4 * bound})
		clock := newClock()
		clock.at(50)
		for n := range 2 {
			hooktest.Apply(t, memory, hooktest.SetAll("acme", n))
			clock.at(50 + 50*n)
			expect(t, copied.Store(), n, "at once")
		}
		polls = 0
		for n := range 1000 {
			hooktest.Apply(t, memory, hooktest.SetAll("acme", n))
			time.Sleep(bound / 1000)
		}
		if synctest.Wait(); polls < 5 || polls > 11 {
			t.Errorf("%d polls in the time between two", polls)
		}
	})
}

// TestDropsOneClient: after a change, only its client is read again.
func TestDropsOneClient(t *testing.T) {
	for name, st := range map[string]func(*stage) webhookcfg.Store{
		"feed":     func(s *stage) webhookcfg.Store { return stagedFeed{s} },
		"versions": func(s *stage) webhookcfg.Store { return scriptedVersions{newScript(1)} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage()
				shared := st(s)
				copied, clock := copyOf(t, shared, cache.Options{MaxStale: bound}), newClock()
				read := func() (reads uint64) {
					before := copied.Stats().Reads
					for _, client := range []string{"a", "b"} {
						if _, err := copied.Resolve(t.Context(), client, "e1"); err != nil {
							t.Error(err)
						}
					}
					return copied.Stats().Reads - before
				}
				clock.at(10)
				read()
				clock.at(30)
				read() // now with their versions
				clock.at(180)
				if reads := read(); reads != 0 {
					t.Errorf("%d reads though nothing changed", reads)
				}
				hooktest.Apply(t, shared, hooktest.Set("a", "e1", 1))
				clock.at(230)
				if age := copied.Stats().Age; age < 0 || age > bound/4 {
					t.Errorf("the last poll was %v ago", age)
				}
				if reads := read(); reads != 1 {
					t.Errorf("%d reads after a change of one client", reads)
				}
			})
		})
	}
}

// TestDropsReadsInProgress: a read that started before a Reset leaves no entry after it.
// Names of all lengths are told apart.
func TestDropsReadsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		var reset atomic.Bool
		copied := copyOf(t, follower{s, func(ctx context.Context, since string) (cache.Changes, error) {
			changes, err := s.Changes(ctx, since)
			if reset.Load() {
				changes.Clients, changes.Reset = nil, true
			}
			return changes, err
		}}, cache.Options{MaxStale: bound})
		clock := newClock()
		names := []string{"e", strings.Repeat("e", 36), strings.Repeat("e", 37), strings.Repeat("e", 36) + "f"}
		for n, name := range names {
			hooktest.Apply(t, s, webhookcfg.SetChange("acme", webhookcfg.Entity(name), hooktest.URL(n)))
		}
		resolve := func() {
			for n, name := range names {
				go func() {
					if hook, err := copied.Resolve(t.Context(), "acme", name); err != nil || !hook.URL.Equal(hooktest.URL(n)) {
						t.Errorf("%s: %v, %v", name, hook, err)
					}
				}()
			}
			synctest.Wait()
		}
		s.readTakes.Store(int64(bound / 10))
		reset.Store(true)
		clock.at(20)
		resolve() // until 30, with a Reset at 25
		clock.at(40)
		if stats := copied.Stats(); stats.Entries != 0 {
			t.Errorf("%d entries are left after all of them expired", stats.Entries)
		}
		reset.Store(false)
		for _, reads := range []uint64{8, 8} {
			resolve()
			clock.at(65)
			if stats := copied.Stats(); stats.Entries != len(names)+1 || stats.Reads != reads {
				t.Errorf("%d entries after %d reads", stats.Entries, stats.Reads)
			}
		}
	})
}

// TestLog: the cache logs the first failure of a poll and the first success after it, even if
// the store panics.
func TestLog(t *testing.T) {
	for name, fail := range map[string]func() (cache.Changes, error){
		"error": func() (cache.Changes, error) { return cache.Changes{}, errFault },
		"panic": func() (cache.Changes, error) { panic("t0ken") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage()
				var failing atomic.Bool
				var log bytes.Buffer
				copied := copyOf(t, follower{s, func(ctx context.Context, since string) (cache.Changes, error) {
					if failing.Load() {
						return fail()
					}
					return s.Changes(ctx, since)
				}}, cache.Options{MaxStale: bound, Logger: slog.New(slog.NewTextHandler(&log, nil))})
				clock := newClock()
				for at, now := range []bool{false, true, true, false, false, true, false} {
					failing.Store(now)
					clock.at(200 * (at + 1))
				}
				_ = copied.Close()
				text := log.String()
				if strings.Count(text, "level=WARN") != 2 || strings.Count(text, "level=INFO") != 2 || strings.Contains(text, "t0ken") {
					t.Errorf("the log is\n%s", text)
				}
			})
		})
	}
}

// erasable is a store with an Eraser that has a witness.
type erasable struct {
	*store.Memory
	erased *string
}

func (e erasable) Erase(_ context.Context, client string) error {
	*e.erased = client
	return nil
}

// TestStoreForOperators: the Store of a cache lists and erases clients if the store behind it
// does, and otherwise says that it doesn't.
func TestStoreForOperators(t *testing.T) {
	type operated interface {
		admin.ClientLister
		admin.Eraser
	}
	open := func(behind webhookcfg.Store) (*cache.Cache, operated) {
		copied, err := cache.New(behind, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = copied.Close() })
		return copied, copied.Store().(operated)
	}
	var erased string
	memory := store.NewMemory()
	hooktest.Apply(t, memory, hooktest.Set("acme", "e1", 1))
	copied, st := open(erasable{memory, &erased})
	if page, err := st.ListClients(t.Context(), "", 10); err != nil || !slices.Equal(page.Clients, []string{"acme"}) {
		t.Errorf("ListClients returned %v, %v, want the page of the store", page, err)
	}
	if err := st.Erase(t.Context(), "globex"); err != nil || erased != "globex" {
		t.Errorf("Erase returned %v and erased %q", err, erased)
	}
	_, without := open(struct{ webhookcfg.Store }{memory})
	if err := copied.Close(); err != nil {
		t.Error(err)
	}
	for _, test := range []struct {
		st   operated
		want error
	}{{without, errors.ErrUnsupported}, {st, cache.ErrClosed}} {
		if _, err := test.st.ListClients(t.Context(), "", 10); !errors.Is(err, test.want) {
			t.Errorf("ListClients returned %v, want %v", err, test.want)
		}
		if err := test.st.Erase(t.Context(), "acme"); !errors.Is(err, test.want) {
			t.Errorf("Erase returned %v, want %v", err, test.want)
		}
	}
}

// TestStoreLists: the Store of a cache is a Lister if the store behind it is, and only then.
// So a handler serves the same operations with and without a cache.
func TestStoreLists(t *testing.T) {
	memory := store.NewMemory()
	hooktest.Apply(t, memory, hooktest.Set("acme", "e1", 1))
	copied, err := cache.New(memory, nil)
	if err != nil {
		t.Fatal(err)
	}
	lister, ok := copied.Store().(webhookcfg.Lister)
	if !ok {
		t.Fatal("not a Lister, but the store is")
	}
	page, err := lister.List(t.Context(), "acme", "", 10)
	if err != nil || len(page.Overrides) != 1 || page.Overrides[0].Entity != "e1" {
		t.Errorf("List returned %v, %v, want the page of the store", page, err)
	}
	if err := copied.Close(); err != nil {
		t.Error(err)
	}
	if _, err := lister.List(t.Context(), "acme", "", 10); !errors.Is(err, cache.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	copied, err = cache.New(struct{ webhookcfg.Store }{memory}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	if _, ok := copied.Store().(webhookcfg.Lister); ok {
		t.Error("a Lister, but the store is not")
	}
}
