package cache_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// pool is a store in which each call holds a connection for some time, unless its
// context ends before it has one.
type pool struct {
	webhookcfg.Store
	memory      *store.Memory
	connections chan struct{}
	takes       time.Duration
	slow        string        // a client whose reads take longer
	slowTakes   time.Duration // how long they take

	mu                  sync.Mutex
	reads, most, polled int
}

func (p *pool) call(ctx context.Context, takes time.Duration) error {
	select {
	case p.connections <- struct{}{}:
		defer func() { <-p.connections }()
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *pool) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	p.count(+1)
	defer p.count(-1)
	takes := p.takes
	if client == p.slow {
		takes = p.slowTakes
	}
	if err := p.call(ctx, takes); err != nil {
		return webhookcfg.Webhook{}, err
	}
	return p.memory.Resolve(ctx, client, entity)
}

func (p *pool) count(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads += n
	p.most = max(p.most, p.reads)
}

func (p *pool) Changes(ctx context.Context, since string) (cache.Changes, error) {
	if err := p.call(ctx, p.takes); err != nil {
		return cache.Changes{}, err
	}
	p.mu.Lock()
	p.polled++
	p.mu.Unlock()
	return p.memory.Changes(ctx, since)
}

func newPool(connections int, takes time.Duration) *pool {
	memory := store.NewMemory()
	return &pool{Store: memory, memory: memory, connections: make(chan struct{}, connections), takes: takes}
}

// TestReadsAreLimited: there are never more than MaxReads reads at a time, and never more
// than half of them for one client. All callers get their turn.
func TestReadsAreLimited(t *testing.T) {
	for _, limit := range []struct{ maxReads, all, oneClient int }{{0, 8, 4}, {1, 1, 1}, {5, 5, 3}} {
		for name, c := range map[string]struct {
			client func(n int) string
			most   int
		}{
			"many clients": {func(n int) string { return fmt.Sprint("client ", n) }, limit.all},
			"one client":   {func(int) string { return "acme" }, limit.oneClient},
		} {
			t.Run(fmt.Sprint(limit.maxReads, " ", name), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := newPool(1000, bound/10)
					copied := copyOf(t, st, cache.Options{MaxStale: time.Hour, MaxReads: limit.maxReads})
					var all sync.WaitGroup
					for n := range 40 {
						all.Go(func() {
							if _, err := copied.Resolve(t.Context(), c.client(n), fmt.Sprint("e", n)); err != nil {
								t.Error(err)
							}
						})
					}
					if all.Wait(); st.most != c.most {
						t.Errorf("%d concurrent reads, want %d", st.most, c.most)
					}
				})
			})
		}
	}
}

// TestOneClientDoesNotTakeAllReads: if one client's reads hang, other clients don't wait.
func TestOneClientDoesNotTakeAllReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newPool(1000, 0)
		st.slow, st.slowTakes = "slow", time.Hour
		copied := copyOf(t, st, cache.Options{MaxReads: 4})
		for n := range 100 {
			go func() { _, _ = copied.Resolve(t.Context(), "slow", fmt.Sprint("e", n)) }()
		}
		synctest.Wait()
		for n := range 10 { // a change of the client does not give it further turns
			hooktest.Apply(t, st, hooktest.SetAll("slow", n))
			time.Sleep(time.Second)
			go func() { _, _ = copied.Resolve(t.Context(), "slow", "e0") }()
			synctest.Wait()
		}
		started := time.Now()
		if _, err := copied.Resolve(t.Context(), "acme", "e1"); err != nil || time.Since(started) > 0 {
			t.Errorf("got %v after %v, want a hit at once", err, time.Since(started))
		}
	})
}

// TestPollsAreNotStarved: with fewer reads than connections, polls succeed regardless of how
// many callers miss.
func TestPollsAreNotStarved(t *testing.T) {
	workers := 400
	if *full {
		workers = 1000
	}
	for _, c := range []struct {
		maxReads int
		starved  bool
	}{{9, false}, {1000, true}} {
		t.Run(fmt.Sprint(c.maxReads), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				copied := copyOf(t, newPool(10, bound/20), cache.Options{
					MaxStale: bound, MaxReads: c.maxReads, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				})
				ctx, cancel := context.WithTimeout(t.Context(), 10*bound)
				defer cancel()
				var all sync.WaitGroup
				for worker := range workers {
					all.Go(func() {
						for n := 0; ctx.Err() == nil; n++ {
							_, _ = copied.Resolve(ctx, fmt.Sprint("client ", worker), fmt.Sprint("e", n))
						}
					})
				}
				all.Wait()
				_ = copied.Close()
				if starved := strings.Contains(log.String(), "level=WARN"); starved != c.starved {
					t.Errorf("polls failed: %t, want %t", starved, c.starved)
				}
			})
		})
	}
}

// TestPollsTakeNoTurn: polls go on while reads that hang take all turns.
func TestPollsTakeNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newPool(1000, 0)
		st.slow, st.slowTakes = "slow", time.Hour
		copied, clock := copyOf(t, st, cache.Options{MaxStale: bound, MaxReads: 1}), newClock()
		go func() { _, _ = copied.Resolve(t.Context(), "slow", "e1") }()
		clock.at(1000)
		if age := copied.Stats().Age; age < 0 || age > bound/4 {
			t.Errorf("the last poll started %v ago", age)
		}
	})
}

// TestCallersShareTheirTurn: callers for one entity that wait for a turn share the read, even
// while its client is being changed through the cache.
func TestCallersShareTheirTurn(t *testing.T) {
	for _, changing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			st := newPool(1000, bound/10)
			st.slow, st.slowTakes = "slow", 2*bound
			copied := copyOf(t, hangingApply{st}, cache.Options{MaxReads: 1})
			ctx, cancel := context.WithTimeout(t.Context(), 3*bound)
			defer cancel()
			if changing {
				go func() { _ = copied.Store().Apply(ctx, hooktest.SetAll("acme", 1)) }()
			}
			go func() { _, _ = copied.Resolve(ctx, "slow", "e1") }()
			synctest.Wait()
			var all sync.WaitGroup
			for range 100 {
				all.Go(func() {
					if _, err := copied.Resolve(t.Context(), "acme", "e1"); err != nil {
						t.Error(err)
					}
				})
			}
			if all.Wait(); copied.Stats().Reads != 2 {
				t.Errorf("while changing (%t): %d reads", changing, copied.Stats().Reads)
			}
		})
	}
}

// TestWaitForTurn: a read that waits for its turn has a time limit, which later callers do
// not inherit, and the age of its result counts from its turn.
func TestWaitForTurn(t *testing.T) {
	for name, c := range map[string]struct {
		released int // when the turn is free, in hundredths of the bound
		early    error
	}{
		"in time":  {1900, nil},
		"too late": {2500, context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, release := store.NewMemory(), make(chan struct{})
				copied := copyOf(t, resolver{nil, func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
					if client == "slow" {
						<-release // whatever becomes of ctx
					}
					return memory.Resolve(ctx, client, entity)
				}}, cache.Options{MaxStale: bound, MaxReads: 1})
				clock := newClock()
				go func() { _, _ = copied.Resolve(t.Context(), "slow", "e1") }()
				clock.at(1)
				var all sync.WaitGroup
				all.Go(func() {
					if _, err := copied.Resolve(t.Context(), "acme", "e1"); !errors.Is(err, c.early) {
						t.Errorf("the early caller got %v", err)
					}
					if took := time.Since(clock.start); took > 2001*bound/100 {
						t.Errorf("the early caller waited until %v", took)
					}
				})
				clock.at(1500)
				all.Go(func() {
					if _, err := copied.Resolve(t.Context(), "acme", "e1"); err != nil {
						t.Errorf("the late caller got %v", err)
					}
				})
				clock.at(c.released)
				close(release)
				all.Wait()
				reads := copied.Stats().Reads
				clock.at(c.released + 90)
				if _, err := copied.Resolve(t.Context(), "acme", "e1"); err != nil || copied.Stats().Reads != reads {
					t.Errorf("%v, or no entry within the bound", err)
				}
			})
		})
	}
}

// hangingApply is a store whose Apply ends with its context.
type hangingApply struct{ webhookcfg.Store }

func (hangingApply) Apply(ctx context.Context, _ webhookcfg.Change) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestHeldAtTheDeadline: while the store hangs, an entry within StaleIfError is returned
// when the deadline of the caller passes, but not to a caller that is canceled.
func TestHeldAtTheDeadline(t *testing.T) {
	held := cache.Options{MaxStale: bound, StaleIfError: 10 * bound}
	for name, c := range map[string]struct {
		options  cache.Options
		entity   string
		at       int // when the caller comes, in hundredths of the bound
		deadline time.Duration
		cancel   time.Duration
		took     time.Duration
		err      error
	}{
		"deadline":                    {options: held, deadline: bound / 2, took: bound / 2},
		"deadline after the bound":    {options: held, deadline: 2 * bound, took: bound},
		"no deadline":                 {options: held, took: bound},
		"canceled":                    {options: held, cancel: bound / 2, took: bound / 2, err: context.Canceled},
		"canceled before a deadline":  {options: held, deadline: bound, cancel: bound / 2, took: bound / 2, err: context.Canceled},
		"canceled after its deadline": {options: held, deadline: bound / 4, cancel: bound / 2, took: bound / 4},
		"deadline before the call":    {options: held, deadline: -1, err: context.DeadlineExceeded},
		"entry too old at the end":    {options: held, at: 960, deadline: bound / 2, took: bound / 2, err: context.DeadlineExceeded},
		"no entry":                    {options: held, entity: "e2", deadline: bound / 2, took: bound / 2, err: context.DeadlineExceeded},
		"not allowed":                 {options: cache.Options{MaxStale: bound}, deadline: bound / 2, took: bound / 2, err: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStage()
				hooktest.Apply(t, s, hooktest.SetAll("acme", 1))
				copied, clock := copyOf(t, stagedPlain{s}, c.options), newClock()
				expect(t, copied.Store(), 1, "at first")
				s.readTakes.Store(int64(time.Hour))
				clock.at(max(c.at, 200))
				started := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.deadline != 0 {
					ctx, cancel = context.WithTimeout(ctx, c.deadline)
					defer cancel()
				}
				if c.cancel != 0 {
					time.AfterFunc(c.cancel, cancel)
				}
				entity := "e1"
				if c.entity != "" {
					entity = c.entity
				}
				hook, err := copied.Resolve(ctx, "acme", entity)
				if took := time.Since(started); took != c.took || !errors.Is(err, c.err) || err == nil && !hook.URL.Equal(hooktest.URL(1)) {
					t.Errorf("%v, %v after %v", hook, err, took)
				}
			})
		})
	}
}

// TestFailingStoreIsNotAwaited: for twice MaxStale after a read of a client failed, callers with
// an entry hardly wait, while their reads go on.
func TestFailingStoreIsNotAwaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		for _, client := range []string{"acme", "other"} {
			hooktest.Apply(t, s, hooktest.SetAll(client, 1))
		}
		copied, clock := copyOf(t, stagedPlain{s}, cache.Options{MaxStale: bound, StaleIfError: time.Hour}), newClock()
		resolve := func(client, entity string, n int, expected time.Duration) {
			t.Helper()
			started := time.Now()
			hook, err := copied.Resolve(t.Context(), client, entity)
			if took := time.Since(started); took != expected || (err == nil) != (n > 0) || err == nil && !hook.URL.Equal(hooktest.URL(n)) {
				t.Errorf("%s: %v, %v after %v, want %d after %v", client, hook, err, took, n, expected)
			}
		}
		resolve("acme", "e1", 1, 0)
		resolve("other", "e1", 1, 0)
		s.readTakes.Store(int64(time.Hour))
		clock.at(200)
		resolve("acme", "e1", 1, bound) // until 300
		for range 400 {                 // longer than the bound, since reads go on to fail
			resolve("acme", "e1", 1, bound/100)
		}
		resolve("acme", "e2", 0, bound)  // has no entry
		resolve("other", "e1", 1, bound) // has had no failure
		resolve("acme", "e1", 1, bound/100)

		hooktest.Apply(t, s, hooktest.SetAll("acme", 2))
		s.readTakes.Store(0)
		time.Sleep(bound / 2) // until then callers join the read of the last one
		resolve("acme", "e1", 2, 0)
		hooktest.Apply(t, s, hooktest.SetAll("acme", 3))
		s.readTakes.Store(int64(bound / 2))
		time.Sleep(3 * bound)
		resolve("acme", "e1", 3, bound/2) // long after the failure
	})
}

// TestHangingStoreIsNotAwaited: while the store hangs, no client waits in full, since a poll
// found out for all of them. Once it responds again, they wait for what it says.
func TestHangingStoreIsNotAwaited(t *testing.T) {
	for name, polled := range map[string]func(*stage) webhookcfg.Store{
		"feed":     func(s *stage) webhookcfg.Store { return stagedFeed{s} },
		"versions": func(s *stage) webhookcfg.Store { return stagedVersions{stagedPlain{s}, s} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const clients = 100
				s := newStage()
				for n := range clients {
					hooktest.Apply(t, s, hooktest.SetAll(fmt.Sprint("client ", n), 1))
				}
				copied, clock := copyOf(t, polled(s), cache.Options{MaxStale: bound, StaleIfError: time.Hour}), newClock()
				resolveAll := func(want int, most time.Duration) {
					t.Helper()
					started := time.Now()
					for n := range clients {
						hook, err := copied.Resolve(t.Context(), fmt.Sprint("client ", n), "e1")
						if err != nil || !hook.URL.Equal(hooktest.URL(want)) {
							t.Fatalf("client %d: %v, %v", n, hook, err)
						}
					}
					if took := time.Since(started); took > most {
						t.Errorf("%d clients took %v, want %v at most", clients, took, most)
					}
				}
				resolveAll(1, 0)
				s.readTakes.Store(int64(time.Hour))
				s.pollTake.Store(int64(time.Hour))
				clock.at(1000)
				resolveAll(1, clients*bound/100)
				s.pollTake.Store(0)
				s.readTakes.Store(int64(bound / 50))
				for n := range clients {
					hooktest.Apply(t, s, hooktest.SetAll(fmt.Sprint("client ", n), 2))
				}
				time.Sleep(5 * bound)
				resolveAll(2, clients*bound/50)
			})
		})
	}
}

// TestPatience: callers with an entry wait in full if the only failure is that an earlier
// caller left, or if the entry would be too old after a short wait.
func TestPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := newPool(1000, 0)
		st.slow = "slow"
		copied, clock := copyOf(t, resolver{nil, st.Resolve}, cache.Options{MaxStale: bound, StaleIfError: 10 * bound, MaxReads: 1}), newClock()
		hooktest.Apply(t, st, hooktest.SetAll("acme", 1))
		expect(t, copied.Store(), 1, "at first")
		hooktest.Apply(t, st, hooktest.SetAll("acme", 2))
		st.slowTakes = bound / 2
		hold := func() {
			go func() { _, _ = copied.Resolve(t.Context(), "slow", "e1") }()
			synctest.Wait()
		}
		clock.at(200)
		hold()
		ctx, cancel := context.WithTimeout(t.Context(), bound/4)
		defer cancel()
		if hook, err := copied.Resolve(ctx, "acme", "e1"); err != nil || !hook.URL.Equal(hooktest.URL(1)) {
			t.Errorf("got %v, %v, want the first webhook, since the store hangs", hook, err)
		}
		synctest.Wait() // until its read has ended
		expect(t, copied.Store(), 2, "after an earlier caller left")

		hooktest.Apply(t, st, hooktest.SetAll("acme", 3))
		st.takes = 2 * bound
		clock.at(1100)
		expect(t, copied.Store(), 2, "while the store hangs")
		st.takes = bound / 2
		time.Sleep(time.Until(clock.start.Add(12*bound + bound/2 - bound/200)))
		expect(t, copied.Store(), 3, "when the entry is about to be too old")
	})
}

// TestNamesAreCopied: entries remain correct if the memory of the names is used again.
func TestNamesAreCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStage()
		hooktest.Apply(t, s, hooktest.SetAll("acme", 1))
		copied := copyOf(t, stagedPlain{s}, cache.Options{MaxStale: time.Hour})
		client, entity := []byte("acme"), []byte("e1")
		if _, err := copied.Resolve(t.Context(), unsafe.String(&client[0], len(client)), unsafe.String(&entity[0], len(entity))); err != nil {
			t.Fatal(err)
		}
		copy(client, "ACME")
		copy(entity, "E1")
		expect(t, copied.Store(), 1, "after the names changed")
		if reads := copied.Stats().Reads; reads != 1 {
			t.Errorf("%d reads, want one: the copy kept a name that the caller changed", reads)
		}
	})
}

// TestVersionsAreChecked: a poll fails if it takes too long or returns another number of
// versions.
func TestVersionsAreChecked(t *testing.T) {
	for name, versions := range map[string]func(ctx context.Context, n int) ([]string, error){
		"one more":  func(_ context.Context, n int) ([]string, error) { return make([]string, n+1), nil },
		"one fewer": func(_ context.Context, n int) ([]string, error) { return make([]string, n-1), nil },
		"late": func(ctx context.Context, n int) ([]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				copied := copyOf(t, versionsFunc{store.NewMemory(), versions}, cache.Options{
					MaxStale: bound, Logger: slog.New(slog.NewTextHandler(&log, nil)),
				})
				clock := newClock()
				clock.at(5)
				if _, err := copied.Resolve(t.Context(), "acme", "e1"); err != nil {
					t.Error(err)
				}
				clock.at(80) // the poll of 25 ends at 75 at the latest
				if age := copied.Stats().Age; age != 80*bound/100 {
					t.Errorf("the last successful poll started %v ago", age)
				}
				_ = copied.Close() // which ends the writes to the log
				if text := log.String(); strings.Count(text, "level=WARN") != 1 || strings.Contains(text, "panic") {
					t.Errorf("the log is %q", text)
				}
			})
		})
	}
}

type versionsFunc struct {
	webhookcfg.Store
	versions func(ctx context.Context, n int) ([]string, error)
}

func (f versionsFunc) Versions(ctx context.Context, clients []string) ([]string, error) {
	return f.versions(ctx, len(clients))
}
