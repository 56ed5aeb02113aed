package cache_test

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// stage is a store that reads at once and then takes some time to return. It runs on the
// clock of a synctest bubble.
type stage struct {
	*store.Memory
	version             atomic.Int64
	readTakes, pollTake atomic.Int64 // nanoseconds
	pollsFail           atomic.Bool
	reads, polls        atomic.Int64
}

func newStage() *stage { return &stage{Memory: store.NewMemory()} }

func (s *stage) Apply(ctx context.Context, c webhookcfg.Change) error {
	defer s.version.Add(1)
	return s.Memory.Apply(ctx, c)
}

func (s *stage) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	s.reads.Add(1)
	hook, err := s.Memory.Resolve(ctx, client, entity)
	if err != nil {
		return hook, err
	}
	return hook, take(ctx, &s.readTakes)
}

func (s *stage) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	s.reads.Add(1)
	page, err := s.Memory.List(ctx, client, after, limit)
	if err != nil {
		return page, err
	}
	return page, take(ctx, &s.readTakes)
}

func (s *stage) poll(ctx context.Context) error {
	s.polls.Add(1)
	if s.pollsFail.Load() {
		return errFault
	}
	return take(ctx, &s.pollTake)
}

func take(ctx context.Context, nanoseconds *atomic.Int64) error {
	select {
	case <-time.After(time.Duration(nanoseconds.Load())):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// The optional interfaces of the store.
type (
	stagedFeed     struct{ *stage }
	stagedVersions struct {
		webhookcfg.Store
		stage *stage
	}
	stagedPlain struct{ webhookcfg.Store }
)

func (s stagedFeed) Changes(ctx context.Context, since string) (cache.Changes, error) {
	changes, err := s.Memory.Changes(ctx, since)
	if err != nil {
		return changes, err
	}
	return changes, s.poll(ctx)
}

func (s stagedFeed) Notify(context.Context) <-chan struct{} { return nil }

func (s stagedVersions) Versions(ctx context.Context, clients []string) ([]string, error) {
	versions := make([]string, len(clients))
	for i := range versions {
		versions[i] = strconv.FormatInt(s.stage.version.Load(), 10)
	}
	return versions, s.stage.poll(ctx)
}

// copyOf returns a cache that is closed at the end of the bubble.
func copyOf(t *testing.T, st webhookcfg.Store, o cache.Options) *cache.Cache {
	t.Helper()
	copied, err := cache.New(st, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = copied.Close() })
	synctest.Wait() // for the first poll
	return copied
}

// clock lets a test schedule its steps.
type clock struct{ start time.Time }

func newClock() clock { return clock{time.Now()} }

// at waits until so many hundredths of the bound have passed.
func (c clock) at(hundredths int) {
	time.Sleep(time.Until(c.start.Add(time.Duration(hundredths) * bound / 100)))
	synctest.Wait()
}

// expect checks for the webhook that change n set.
func expect(t *testing.T, st webhookcfg.Store, n int, otherwise string) {
	t.Helper()
	hook, err := st.Resolve(t.Context(), "acme", "e1")
	if err != nil || !hook.URL.Equal(hooktest.URL(n)) {
		t.Errorf("%s: %v, %v", otherwise, hook, err)
	}
}

// TestSchedules runs schedules that TestBound seldom produces.
func TestSchedules(t *testing.T) {
	for name, run := range map[string]func(*testing.T){
		"old read":           runOldRead,
		"slow poll":          runSlowPoll,
		"slow version check": runSlowCheck,
		"empty version":      runEmptyVersion,
	} {
		t.Run(name, func(t *testing.T) { synctest.Test(t, run) })
	}
}

// runOldRead: a caller does not join a read that started longer ago than the bound.
func runOldRead(t *testing.T) {
	s := newStage()
	copied, clock := copyOf(t, stagedPlain{s}, cache.Options{MaxStale: bound}), newClock()
	hooktest.Apply(t, s, hooktest.SetAll("acme", 1))
	s.readTakes.Store(int64(3 * bound / 2))
	go func() { _, _ = copied.Resolve(t.Context(), "acme", "e1") }()
	clock.at(10)
	hooktest.Apply(t, s, hooktest.SetAll("acme", 2))
	clock.at(120)
	expect(t, copied.Store(), 2, "beyond the bound, from a read that started too early")
	clock.at(300)
}

// runSlowPoll: a poll vouches for the time of its start, not of its end.
func runSlowPoll(t *testing.T) {
	s := newStage()
	hooktest.Apply(t, s, hooktest.SetAll("acme", 1))
	copied, clock := copyOf(t, stagedFeed{s}, cache.Options{MaxStale: bound}), newClock()
	clock.at(5)
	expect(t, copied.Store(), 1, "at first")
	s.pollTake.Store(int64(45 * bound / 100))
	clock.at(30) // the second poll, from 25 to 70, has looked
	hooktest.Apply(t, s, hooktest.SetAll("acme", 2))
	s.pollsFail.Store(true)
	clock.at(120)
	expect(t, copied.Store(), 1, "within the bound, and kept")
	clock.at(135)
	expect(t, copied.Store(), 2, "beyond the bound, after a slow poll")
}

func runSlowCheck(t *testing.T) {
	s := newStage()
	copied, clock := copyOf(t, stagedVersions{stagedPlain{s}, s}, cache.Options{MaxStale: bound}), newClock()
	hooktest.Apply(t, s, hooktest.SetAll("acme", 1))
	clock.at(5)
	expect(t, copied.Store(), 1, "at first")
	clock.at(30) // the second poll has learned the version
	expect(t, copied.Store(), 1, "after the first check")
	s.pollTake.Store(int64(45 * bound / 100))
	clock.at(55) // the third poll, from 50 to 95, has looked
	hooktest.Apply(t, s, hooktest.SetAll("acme", 2))
	s.pollsFail.Store(true)
	clock.at(145)
	expect(t, copied.Store(), 1, "within the bound, and kept")
	clock.at(160)
	expect(t, copied.Store(), 2, "beyond the bound, after a slow check")
}

// runEmptyVersion: an entry that was read before the first check of its client may be older
// than the version from that check, even if the version is "".
func runEmptyVersion(t *testing.T) {
	s := newStage()
	copied, clock := copyOf(t, emptyVersions{stagedPlain{s}}, cache.Options{MaxStale: bound}), newClock()
	hooktest.Apply(t, s, hooktest.SetAll("acme", 1))
	clock.at(5)
	expect(t, copied.Store(), 1, "at first")
	hooktest.Apply(t, s, hooktest.SetAll("acme", 2))
	clock.at(130)
	expect(t, copied.Store(), 2, "beyond the bound, with an empty version")
}

// emptyVersions is the Versioner of a store that changed before the first check only.
type emptyVersions struct{ webhookcfg.Store }

func (emptyVersions) Versions(_ context.Context, clients []string) ([]string, error) {
	return make([]string, len(clients)), nil
}
