package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// Failover kills the busy primary of a pair and promotes its standby, which is synchronous.
func (e Engine) Failover(t *testing.T, pair *engine.Pair) {
	t.Helper()
	failover := crash{pair.DSN(), func() error { return pair.Primary().Kill() }, pair.Failover}
	t.Run("histories", func(t *testing.T) {
		workload := crashing(failover)
		workload.Fault = func() error {
			return errors.Join(pair.Standby().Freeze(), e.notAcknowledged(t, pair), pair.Standby().Thaw(), pair.Failover())
		}
		linearizable.Check(t, workload, func(t testing.TB) []linearizable.Store { return e.replicas(t, pair.DSN()) })
	})
	t.Run("acknowledged", func(t *testing.T) {
		if err := e.killWriters(t, failover); err != nil {
			t.Error(err)
		}
	})
	t.Run("not acknowledged", func(t *testing.T) {
		db := e.Open(t, pair.DSN())
		st := e.store(t, db, prefix(t, db))
		migrate(t, st)
		pair.Detach()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		if err := st.Apply(ctx, changesOf("acme")[0]); err == nil {
			t.Error("a change was acknowledged without the standby")
		}
		if err := pair.Failover(); err != nil {
			t.Fatal(err)
		}
		if err := reconnected(t, db); err != nil {
			t.Fatal(err)
		}
		if page := list(t, st); len(page.Overrides) > 0 {
			t.Errorf("the standby had %+v", page)
		}
	})
}

// notAcknowledged returns when the primary has waited for its standby for a moment.
func (e Engine) notAcknowledged(t testing.TB, pair *engine.Pair) error {
	db := e.Open(t, pair.DSN())
	if err := db.PingContext(t.Context()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := db.ExecContext(ctx, "SELECT pg_logical_emit_message(true, 'frozen', '')"); !engine.IsTimeout(err) {
		return fmt.Errorf("a commit with a frozen standby: %w, want the deadline", err)
	}
	return nil
}

// LostChange checks that a copy drops a webhook when the database lost its change, regardless
// of how the copy polls. It calls save when the tables have content, and lose to go back to
// that.
func (e Engine) LostChange(t *testing.T, dsn string, save, lose func() error) {
	t.Helper()
	for name, poll := range map[string]func(*steps, *sqlstore.Store) webhookcfg.Store{
		"feed":     func(s *steps, st *sqlstore.Store) webhookcfg.Store { return steppedFeed{plainStore{st}, st, s} },
		"versions": func(s *steps, st *sqlstore.Store) webhookcfg.Store { return steppedVersioner{plainStore{st}, st, s} },
	} {
		if name == "feed" && e.Dialect == sqlstore.MySQL() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			if err := e.loseChange(t, dsn, save, lose, poll); err != nil {
				t.Error(err)
			}
		})
	}
}

func (e Engine) loseChange(t *testing.T, dsn string, save, lose func() error, polled func(*steps, *sqlstore.Store) webhookcfg.Store) error {
	t.Helper()
	db := e.Open(t, dsn)
	st := e.store(t, db, prefix(t, db))
	migrate(t, st)
	changes := changesOf("acme")
	if err := errors.Join(st.Apply(t.Context(), changes[0]), save(), reconnected(t, db)); err != nil {
		return err
	}
	// Only a poll can make the copy drop an entry.
	steps := &steps{make(chan struct{}), make(chan error)}
	copied, err := cache.New(polled(steps, st), &cache.Options{MaxStale: time.Hour})
	if err != nil {
		return err
	}
	defer copied.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var warming sync.WaitGroup
	warming.Go(func() {
		for copied.Warm(ctx, nil) == nil { // makes the copy poll, without waiting for the next quarter of an hour
		}
	})
	defer warming.Wait()
	defer cancel()
	resolve := func(entity string) (webhookcfg.Source, error) {
		hook, err := copied.Resolve(t.Context(), "acme", entity)
		return hook.Source, err
	}
	for unchanged := false; !unchanged; { // until a poll vouches for the entry
		before := copied.Stats().Reads
		if err := steps.poll(func() error { return second(resolve("e2")) }); err != nil {
			return err
		}
		unchanged = copied.Stats().Reads == before
	}
	if err := st.Apply(t.Context(), changes[1]); err != nil {
		return err
	}
	if source, err := resolve("e3"); err != nil || source != webhookcfg.SourceBase {
		return fmt.Errorf("the copy has %s before the loss, %v", source, err)
	}
	if err := errors.Join(lose(), reconnected(t, db)); err != nil {
		return err
	}
	for range 20 { // so that the database assigns the numbers of the lost changes again
		if err := st.Apply(t.Context(), changesOf("twin")[0]); err != nil {
			return err
		}
	}
	if err := steps.poll(func() error { return second(resolve("e3")) }); err != nil {
		return err
	}
	if hook, err := st.Resolve(t.Context(), "acme", "e3"); err != nil || hook.Source != webhookcfg.SourceNone {
		return fmt.Errorf("the database has lost nothing: %s, %v", hook.Source, err)
	}
	if source, err := resolve("e3"); err != nil || source != webhookcfg.SourceNone {
		return fmt.Errorf("the copy still has the lost %s, %v", source, err)
	}
	return nil
}

// reconnected returns when the pool has no more connections to a killed server.
func reconnected(t testing.TB, db *sql.DB) error {
	t.Helper()
	conns := make([]*sql.Conn, 0, PoolSize)
	defer func() {
		for _, conn := range conns {
			_ = conn.Close()
		}
	}()
	for len(conns) < PoolSize {
		conn, err := db.Conn(t.Context())
		if t.Context().Err() != nil {
			return err
		}
		if err == nil && conn.PingContext(t.Context()) == nil {
			conns = append(conns, conn)
		} else if err == nil {
			_ = conn.Close()
		}
	}
	return nil
}

// steps lets the test decide when a copy polls.
type steps struct {
	next chan struct{}
	done chan error
}

// poll returns after two successful polls. The second one starts when the copy has processed
// the first. The copy only polls for a client while it has entries.
func (s *steps) poll(resolve func() error) error {
	for successes := 0; ; {
		if err := resolve(); err != nil || successes == 2 {
			return err
		}
		select {
		case s.next <- struct{}{}:
			if <-s.done == nil {
				successes++
			}
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *steps) wait(ctx context.Context, call func() error) error {
	select {
	case <-s.next:
	case <-ctx.Done():
		return ctx.Err()
	}
	err := call()
	s.done <- err
	return err
}

// plainStore is a store without its optional interfaces. Only a copy of a Lister can be
// warmed, but this one has no lists, so that the copy reads entities.
type plainStore struct{ webhookcfg.Store }

func (plainStore) List(context.Context, string, string, int) (webhookcfg.Page, error) {
	return webhookcfg.Page{}, errors.ErrUnsupported
}

type steppedFeed struct {
	plainStore
	feed cache.Feed
	*steps
}

func (s steppedFeed) Changes(ctx context.Context, since string) (changes cache.Changes, err error) {
	err = s.wait(ctx, func() error { changes, err = s.feed.Changes(ctx, since); return err })
	return changes, err
}

type steppedVersioner struct {
	plainStore
	versioner cache.Versioner
	*steps
}

func (s steppedVersioner) Versions(ctx context.Context, clients []string) (versions []string, err error) {
	err = s.wait(ctx, func() error { versions, err = s.versioner.Versions(ctx, clients); return err })
	return versions, err
}

func second[T any](_ T, err error) error { return err }
