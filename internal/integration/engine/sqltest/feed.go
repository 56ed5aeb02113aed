package sqltest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

// feed checks that the feed reports every client that concurrent writers change.
func (e Engine) feed(t *testing.T) {
	st := e.fresh(t, e.Shared(t).DSN())
	if _, err := st.Changes(t.Context(), ""); errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	missed, err := collectMissed(t.Context(), st)
	if err != nil {
		t.Fatal(err)
	}
	if len(missed) > 0 {
		t.Errorf("%d of %d changes were never reported", len(missed), watchWriters*watchEach)
	}
}

const (
	watchWriters = 8
	watchEach    = 75
)

// collectMissed polls a store's feed while writers apply changes. It returns the changed
// clients that the feed didn't report.
func collectMissed(ctx context.Context, st *sqlstore.Store) (missed []string, err error) {
	first, err := st.Changes(ctx, "")
	if err != nil || !first.Reset {
		return nil, fmt.Errorf("the first response is %+v, %w", first, err)
	}
	written := make(chan struct{})
	writers, writing := errgroup.WithContext(ctx)
	for w := range watchWriters {
		writers.Go(func() error { return writeMany(writing, w, st) })
	}
	followers, following := errgroup.WithContext(ctx)
	followers.Go(func() (err error) { missed, err = follow(following, st, first.Next, written); return err })
	err = writers.Wait()
	close(written)
	return missed, errors.Join(err, followers.Wait())
}

func watched(w, n int) string { return "watched-" + strconv.Itoa(w*watchEach+n) }

func writeMany(ctx context.Context, w int, st *sqlstore.Store) error {
	for n := range watchEach {
		c := webhookcfg.SetChange(watched(w, n), webhookcfg.Entity("e1"), egress.NewURL("https://h.example.com/"))
		c.Time = time.Unix(1, 0)
		if err := st.Apply(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// follow polls until a poll has started after the last change.
func follow(ctx context.Context, st *sqlstore.Store, since string, written <-chan struct{}) (missed []string, err error) {
	named := make(map[string]bool)
	for last := false; ; {
		changes, err := st.Changes(ctx, since)
		if err != nil {
			return nil, err
		}
		if changes.Reset {
			return nil, errors.New("unexpected reset")
		}
		for _, client := range changes.Clients {
			named[client] = true
		}
		since = changes.Next
		if last {
			break
		}
		select {
		case <-written:
			last = true
		default:
		}
	}
	for n := range watchWriters * watchEach {
		if client := watched(0, n); !named[client] {
			missed = append(missed, client)
		}
	}
	return missed, nil
}

// versions checks that equal versions mean equal configurations.
func (e Engine) versions(t *testing.T) {
	if err := compareVersions(t, e.fresh(t, e.Shared(t).DSN())); err != nil {
		t.Error(err)
	}
}

// observations maps an entity and its client's version to the resolved webhook.
type observations struct {
	mu     sync.Mutex
	seen   map[string]string
	agreed int
}

// compareVersions lets readers observe the versions and webhooks of one client while writers
// change it.
func compareVersions(t *testing.T, st *sqlstore.Store) error {
	t.Helper()
	const workers, each = 3, 80
	seen := observations{seen: make(map[string]string)}
	group, ctx := errgroup.WithContext(t.Context())
	for w := range workers {
		group.Go(func() error {
			for n := range each {
				if err := st.Apply(ctx, anyChange("acme", w*each+n)); err != nil {
					return err
				}
			}
			return nil
		})
		group.Go(func() error {
			for range each {
				if err := seen.read(ctx, st); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	t.Logf("%d observations, of which %d agreed with an earlier one", len(seen.seen), seen.agreed)
	return err
}

// read resolves an entity, and reads the version before and after that.
func (a *observations) read(ctx context.Context, st *sqlstore.Store) error {
	entity := "e" + strconv.Itoa(rand.IntN(2))
	before, err := st.Versions(ctx, []string{"acme"})
	if err != nil {
		return err
	}
	hook, err := st.Resolve(ctx, "acme", entity)
	if err != nil {
		return err
	}
	after, err := st.Versions(ctx, []string{"acme"})
	if err != nil || before[0] != after[0] {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	key, resolved := entity+" at "+before[0], fmt.Sprint(hook.Source, hook.URL.Reveal(), hook.Since)
	earlier, ok := a.seen[key]
	if ok && earlier != resolved {
		return fmt.Errorf("%s resolved to %s, and to %s", key, earlier, resolved)
	}
	if ok {
		a.agreed++
	}
	a.seen[key] = resolved
	return nil
}

// anyChange returns a random change of a client. Its URL and its time come from n.
func anyChange(client string, n int) webhookcfg.Change {
	scope := webhookcfg.Entity("e" + strconv.Itoa(rand.IntN(2)))
	if rand.IntN(4) == 0 {
		scope = webhookcfg.All()
	}
	c := webhookcfg.UnsetChange(client, scope)
	if rand.IntN(3) > 0 {
		c = webhookcfg.SetChange(client, scope, egress.NewURL("https://h.example.com/"+strconv.Itoa(n)))
	}
	c.Time = time.Unix(int64(n+1), 0)
	return c
}
