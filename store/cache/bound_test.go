package cache_test

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// trial is a random schedule of changes, faults and readers of a cache.
type trial struct {
	name  string
	store func(*scripted) webhookcfg.Store
	// local means that changes are made through the cache.
	local        bool
	maxStale     time.Duration
	staleIfError time.Duration
}

const bound = time.Second

var trials = []trial{
	{name: "feed", store: func(s *scripted) webhookcfg.Store { return scriptedFeed{s} }, maxStale: bound},
	{name: "feed, stale on error", store: func(s *scripted) webhookcfg.Store { return scriptedFeed{s} }, maxStale: bound / 4, staleIfError: bound},
	{name: "versions", store: func(s *scripted) webhookcfg.Store { return scriptedVersions{s} }, maxStale: bound},
	{name: "feed and pages", store: feedPages, maxStale: bound},
	{name: "feed and pages, stale on error", store: feedPages, maxStale: bound / 4, staleIfError: bound},
	{name: "versions and pages", store: func(s *scripted) webhookcfg.Store {
		return scriptedVersionsPages{scriptedPages{s, s}, scriptedVersions{s}}
	}, maxStale: bound},
	{name: "pages", store: func(s *scripted) webhookcfg.Store { return scriptedPages{s, s} }, maxStale: bound},
	{name: "neither", store: func(s *scripted) webhookcfg.Store { return scriptedPlain{s} }, maxStale: bound},
	{name: "neither, stale on error", store: func(s *scripted) webhookcfg.Store { return scriptedPlain{s} }, maxStale: bound / 4, staleIfError: bound},
	{name: "changes of its own", store: func(s *scripted) webhookcfg.Store { return scriptedFeed{s} }, local: true, maxStale: bound},
	{name: "pages and changes of its own", store: feedPages, local: true, maxStale: bound},
}

func feedPages(s *scripted) webhookcfg.Store {
	return scriptedFeedPages{scriptedPages{s, s}, scriptedFeed{s}, scriptedFeed{s}}
}

// limit is the permitted staleness of a result.
func (tr trial) limit() time.Duration {
	if tr.local {
		return 0
	}
	return bound
}

// full runs the random histories in full, and removes the guards one at a time. Without it, a sample
// takes seconds.
var full = flag.Bool("full", false, "run long tests in full, and not a sample")

// seeds is how many random histories a trial has.
func seeds() int {
	if *full {
		return 4
	}
	return 1
}

// TestBound checks that results are never staler than the bound: the store could have
// returned each of them less than the bound before Resolve was called, or later. The log
// shows how stale they were.
func TestBound(t *testing.T) {
	for _, tr := range trials {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			var all outcome
			for seed := range uint64(seeds()) {
				synctest.Test(t, func(t *testing.T) { all.add(tr.run(t, seed)) })
			}
			all.report(t, tr)
		})
	}
}

// outcome collects the results of a trial.
type outcome struct {
	mu        sync.Mutex
	staleness []time.Duration // of the results
	errors    int
	reads     uint64
	wrong     []string
}

func (o *outcome) add(other *outcome) {
	o.staleness = append(o.staleness, other.staleness...)
	o.errors += other.errors
	o.reads += other.reads
	o.wrong = append(o.wrong, other.wrong...)
}

func (o *outcome) report(t *testing.T, tr trial) {
	slices.Sort(o.staleness)
	at := func(q float64) time.Duration {
		return o.staleness[int(q*float64(len(o.staleness)-1))].Round(time.Millisecond)
	}
	t.Logf("%d results, %d errors, %d reads of the store; staleness: 50%% %v, 90%% %v, 99%% %v, 99.9%% %v, worst %v; bound %v",
		len(o.staleness), o.errors, o.reads, at(0.5), at(0.9), at(0.99), at(0.999), at(1), tr.limit())
	for _, wrong := range o.wrong[:min(len(o.wrong), 5)] {
		t.Error(wrong)
	}
	if int(o.reads) > len(o.staleness)*19/20 || o.errors > len(o.staleness) {
		t.Errorf("few hits: %d reads, %d errors", o.reads, o.errors)
	}
}

const (
	scriptReaders = 6
	scriptLength  = 150 * bound
)

func (tr trial) run(t *testing.T, seed uint64) *outcome {
	s := newScript(seed)
	copied, err := cache.New(tr.store(s), &cache.Options{
		MaxStale: tr.maxStale, StaleIfError: tr.staleIfError,
	})
	if err != nil {
		t.Fatal(err)
	}
	writer := webhookcfg.Store(s)
	if tr.local {
		writer = copied.Store()
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptLength)
	defer cancel()
	o := new(outcome)
	var all sync.WaitGroup
	for n := range 2 {
		all.Go(func() { s.write(ctx, writer, n+1) })
	}
	all.Go(func() { s.vary(ctx) })
	for range scriptReaders {
		all.Go(func() {
			for s.sleep(ctx, bound/10) == nil {
				o.look(ctx, s, copied, tr.limit())
			}
		})
	}
	all.Wait()
	stats := copied.Stats()
	o.reads = stats.Reads
	if most := len(scriptClients) * (1 + len(entities)); stats.Entries < 0 || stats.Entries > most {
		t.Errorf("%d entries, where %d are the most", stats.Entries, most)
	}
	if err := copied.Close(); err != nil {
		t.Error(err)
	}
	return o
}

// write makes changes: one or two to each client within the time of the bound, sometimes
// fewer. Two writers make different changes.
func (s *scripted) write(ctx context.Context, writer webhookcfg.Store, first int) {
	pace := bound / 10
	for n := first; s.sleep(ctx, pace) == nil; n += 2 {
		if s.chance(20) {
			pace = s.draw(bound) + 1
		}
		if err := writer.Apply(ctx, s.change(n)); err != nil && ctx.Err() == nil {
			panic(err)
		}
	}
}

// vary changes the conditions. Every other time there are no faults.
func (s *scripted) vary(ctx context.Context) {
	for s.sleep(ctx, 5*bound) == nil {
		w := conditions{slow: bound / 50, slowPoll: bound / 50, loseNotifications: s.chance(2)}
		if s.chance(2) {
			w.slow = s.draw(2*bound) + 1
			w.slowPoll = s.draw(bound/2) + 1
			w.failRead = s.chance(6)
			w.failPoll, w.hangPoll = s.below(6), s.below(6)
		}
		s.mu.Lock()
		s.conditions = w
		s.mu.Unlock()
	}
}

// look resolves a random entity, now and then with a short deadline.
func (o *outcome) look(ctx context.Context, s *scripted, copied *cache.Cache, limit time.Duration) {
	client, entity := s.anyName()
	timeout := 5 * bound
	if s.chance(10) {
		timeout = s.draw(bound) + 1
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	started := time.Now()
	hook, err := copied.Resolve(ctx, client, entity)
	o.mu.Lock()
	defer o.mu.Unlock()
	if err != nil {
		o.errors++
		return
	}
	stale, known := s.staleness(client, entity, hooktest.Describe(hook), started)
	o.staleness = append(o.staleness, stale)
	if !known || stale > 0 && stale >= limit {
		o.wrong = append(o.wrong, fmt.Sprintf("beyond the bound of %v: %s / %s, replaced %v before the call (existed: %t)", limit, client, entity, stale, known))
	}
}
