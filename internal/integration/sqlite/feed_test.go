package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// feedStore is a store with a feed.
type feedStore interface {
	webhookcfg.Store
	cache.Feed
}

const (
	feedWriters = 6
	feedChanges = 120 // per writer
)

// TestFeedMissesNothing lets writers change their own clients through two handles. A copy that
// follows the feed must have every change that was made before a poll started.
func TestFeedMissesNothing(t *testing.T) {
	path := newPath(t)
	polls, err := follow(t.Context(), open(t, path), open(t, path), open(t, path))
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d polls", polls)
}

// lossy is a feed that leaves out a client.
type lossy struct{ feedStore }

func (l lossy) Changes(ctx context.Context, since string) (cache.Changes, error) {
	changes, err := l.feedStore.Changes(ctx, since)
	changes.Clients = slices.DeleteFunc(changes.Clients, func(id string) bool { return id == writerName(0) })
	return changes, err
}

func TestLossyFeedIsCaught(t *testing.T) {
	const rounds = 20 // the first poll can come after the last change
	for range rounds {
		path := newPath(t)
		if _, err := follow(t.Context(), lossy{open(t, path)}, open(t, path), open(t, path)); err != nil {
			return
		}
	}
	t.Errorf("no change was missed in %d rounds", rounds)
}

// follow keeps a copy of st up to date while the writers change it, and returns how many
// polls it made.
func follow(ctx context.Context, st feedStore, writers ...webhookcfg.Store) (polls int, err error) {
	var made [feedWriters]atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, feedWriters)
	for w := range feedWriters {
		group.Go(func() {
			for n := 1; n <= feedChanges && errs[w] == nil; n++ {
				if errs[w] = writers[w%len(writers)].Apply(ctx, nth(writerName(w), n)); errs[w] == nil {
					made[w].Store(int64(n))
				}
			}
		})
	}
	over := make(chan struct{})
	go func() { group.Wait(); close(over) }()

	var held [feedWriters]int
	for cursor, last := "", false; !last; polls++ {
		select {
		case <-over:
			last = true
		default:
		}
		var before [feedWriters]int
		for w := range before {
			before[w] = int(made[w].Load())
		}
		if cursor, err = refresh(ctx, st, cursor, &held); err != nil {
			break
		}
		for w := range held {
			if held[w] < before[w] {
				err = fmt.Errorf("poll %d: change %d of writer %d is missing, with %d held", polls, before[w], w, held[w])
			}
		}
		if err != nil {
			break
		}
	}
	group.Wait()
	return polls, errors.Join(append(errs, err)...)
}

// refresh polls once and reads the changed clients.
func refresh(ctx context.Context, st feedStore, cursor string, held *[feedWriters]int) (string, error) {
	changes, err := st.Changes(ctx, cursor)
	if err != nil {
		return "", err
	}
	for w := range held {
		if !changes.Reset && !slices.Contains(changes.Clients, writerName(w)) {
			continue
		}
		hook, err := st.Resolve(ctx, writerName(w), "e1")
		if err != nil {
			return "", err
		}
		held[w] = number(hook)
	}
	return changes.Next, nil
}

// TestFeedResets checks that you get a Reset for an unknown cursor, a cursor of another
// database and a cursor from the future. An idle database gives no changes.
func TestFeedResets(t *testing.T) {
	path := newPath(t)
	s, other, db := open(t, path), open(t, newPath(t)), openDB(t, path, unsynced)
	for n := range 3 {
		if err := errors.Join(s.Apply(t.Context(), nth("c", n+1)), other.Apply(t.Context(), nth("c", n+1))); err != nil {
			t.Fatal(err)
		}
	}
	poll := func(f cache.Feed, since string) cache.Changes {
		t.Helper()
		changes, err := f.Changes(t.Context(), since)
		if err != nil {
			t.Fatal(err)
		}
		return changes
	}
	current := poll(s, "").Next
	identity, _, _ := strings.Cut(current, "/")
	for _, since := range []string{"", "nonsense", poll(other, "").Next, identity + "/99/"} {
		if changes := poll(s, since); !changes.Reset || changes.Next != current || len(changes.Clients) > 0 {
			t.Errorf("%q gives %v", since, changes)
		}
	}
	if changes := poll(s, current); changes.Reset || len(changes.Clients) > 0 || changes.Next != current {
		t.Errorf("idle: %v", changes)
	}
	if changes := poll(s, identity+"/1/"); changes.Reset || !slices.Equal(changes.Clients, []string{"c"}) {
		t.Errorf("from the beginning: %v", changes)
	}
	const many = `INSERT INTO wh_client (id, gen, swept, url, since, mark, vacated, chg)
WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < 4097)
SELECT CAST(i AS BLOB), 0, 0, x'', 0, i, 0, i + 100 FROM n`
	if _, err := db.ExecContext(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	if changes := poll(s, current); !changes.Reset || len(changes.Clients) > 0 {
		t.Errorf("after many: reset %v, %d clients", changes.Reset, len(changes.Clients))
	}
}

// TestVersions checks that versions stay equal while nothing changes, and differ after each
// change.
func TestVersions(t *testing.T) {
	path := newPath(t)
	s, other := open(t, path), open(t, path)
	version := func() string {
		t.Helper()
		all, err := s.Versions(t.Context(), []string{"b", "a", "unknown"})
		if err != nil || len(all) != 3 || all[0] != all[2] {
			t.Fatalf("got %q: %v", all, err)
		}
		return all[1]
	}
	seen := map[string]bool{version(): true}
	for n := range 20 {
		changes := []webhookcfg.Change{nth("a", n), webhookcfg.UnsetChange("a", webhookcfg.Entity("e1")), webhookcfg.UnsetChange("a", webhookcfg.All())}
		if err := other.Apply(t.Context(), changes[n%len(changes)]); err != nil {
			t.Fatal(err)
		}
		if v := version(); seen[v] || v != version() {
			t.Errorf("change %d: version %q is repeated or not stable", n, v)
		} else {
			seen[v] = true
		}
	}
}
