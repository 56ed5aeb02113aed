package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/cache"
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
	missed, err := collectMissed(t.Context(), st, st.Apply)
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

// collectMissed polls a feed while writers apply changes. It returns the changed clients that
// the feed didn't report.
func collectMissed(ctx context.Context, feed cache.Feed, apply func(context.Context, webhookcfg.Change) error) (missed []string, err error) {
	first, err := feed.Changes(ctx, "")
	if err != nil || !first.Reset {
		return nil, fmt.Errorf("the first response is %+v, %w", first, err)
	}
	written := make(chan struct{})
	writers, writing := errgroup.WithContext(ctx)
	for w := range watchWriters {
		writers.Go(func() error { return writeMany(writing, w, apply) })
	}
	followers, following := errgroup.WithContext(ctx)
	followers.Go(func() (err error) { missed, err = follow(following, feed, first.Next, written); return err })
	err = writers.Wait()
	close(written)
	return missed, errors.Join(err, followers.Wait())
}

func watched(w, n int) string { return "watched-" + strconv.Itoa(w*watchEach+n) }

func writeMany(ctx context.Context, w int, apply func(context.Context, webhookcfg.Change) error) error {
	for n := range watchEach {
		c := webhookcfg.SetChange(watched(w, n), webhookcfg.Entity("e1"), egress.NewURL("https://h.example.com/"))
		c.Time = time.Unix(1, 0)
		if err := apply(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

// follow polls until a poll has started after the last change.
func follow(ctx context.Context, feed cache.Feed, since string, written <-chan struct{}) (missed []string, err error) {
	named := make(map[string]bool)
	for last := false; ; {
		changes, err := feed.Changes(ctx, since)
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

// sequenceFeed is a broken feed: it takes its numbers from a database sequence. Transactions
// can commit in another order than they drew their numbers.
type sequenceFeed struct {
	db    *sql.DB
	table string
}

// brokenFeed checks that the test of the feed catches a sequenceFeed.
func (e Engine) brokenFeed(t *testing.T) {
	if e.Dialect == sqlstore.MySQL() {
		t.Skip("the dialect has no feed")
	}
	dsn := e.Shared(t).DSN()
	s := sequenceFeed{e.Open(t, dsn), prefix(t, e.Open(t, dsn)) + "client"}
	execute(t, s.db, "CREATE TABLE "+s.table+" (id text, n bigserial)")
	const rounds = 20
	for range rounds {
		missed, err := collectMissed(t.Context(), s, s.apply)
		if err != nil {
			t.Fatal(err)
		}
		if len(missed) > 0 {
			t.Logf("the feed missed %d of %d changes", len(missed), watchWriters*watchEach)
			return
		}
		execute(t, s.db, "TRUNCATE "+s.table)
	}
	t.Errorf("the feed missed no change in %d rounds", rounds)
}

// apply writes twice in its transaction, so that transactions overlap.
func (s sequenceFeed) apply(ctx context.Context, c webhookcfg.Change) error {
	tx, err := s.db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	for _, statement := range []string{"INSERT INTO " + s.table + " (id) VALUES ($1)", "DELETE FROM " + s.table + " WHERE n < 0 AND id = $1"} {
		if _, err := tx.ExecContext(ctx, statement, c.Client); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	return tx.Commit()
}

// Changes implements [cache.Feed], wrongly.
func (s sequenceFeed) Changes(ctx context.Context, since string) (changes cache.Changes, err error) {
	last, _ := strconv.ParseInt(since, 10, 64)
	rows, err := s.db.QueryContext(ctx, "SELECT id, n FROM "+s.table+" WHERE n > $1 ORDER BY n", last)
	if err != nil {
		return changes, err
	}
	defer rows.Close()
	for rows.Next() {
		var client string
		if err := rows.Scan(&client, &last); err != nil {
			return changes, err
		}
		changes.Clients = append(changes.Clients, client)
	}
	changes.Next, changes.Reset = strconv.FormatInt(last, 10), since == ""
	return changes, rows.Err()
}

// versions checks that equal versions mean equal configurations.
func (e Engine) versions(t *testing.T) {
	dsn := e.Shared(t).DSN()
	if err := compareVersions(t, e.fresh(t, dsn), nil); err != nil {
		t.Error(err)
	}
	t.Run("a generation is no version", func(t *testing.T) {
		db := e.Open(t, dsn)
		name := prefix(t, db)
		st := e.store(t, db, name)
		migrate(t, st)
		const rounds = 20
		for range rounds {
			if err := compareVersions(t, st, generations{db, name}); err != nil {
				return
			}
		}
		t.Errorf("generations as versions were not caught in %d rounds", rounds)
	})
}

// generations is a broken Versioner: a set of one entity doesn't start a generation.
type generations struct {
	db     *sql.DB
	prefix string
}

func (g generations) Versions(ctx context.Context, _ []string) ([]string, error) {
	var version string
	err := g.db.QueryRowContext(ctx, "SELECT COALESCE(MAX(gen), 0) FROM "+g.prefix+"client").Scan(&version)
	return []string{version}, err
}

// observations maps an entity and its client's version to the resolved webhook.
type observations struct {
	mu     sync.Mutex
	seen   map[string]string
	agreed int
}

// compareVersions lets readers observe the versions and webhooks of one client while writers
// change it. If versioner is nil, it uses the store's versions.
func compareVersions(t *testing.T, st *sqlstore.Store, versioner cache.Versioner) error {
	t.Helper()
	if versioner == nil {
		versioner = st
	}
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
				if err := seen.read(ctx, st, versioner); err != nil {
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
func (a *observations) read(ctx context.Context, st *sqlstore.Store, versioner cache.Versioner) error {
	entity := "e" + strconv.Itoa(rand.IntN(2))
	before, err := versioner.Versions(ctx, []string{"acme"})
	if err != nil {
		return err
	}
	hook, err := st.Resolve(ctx, "acme", entity)
	if err != nil {
		return err
	}
	after, err := versioner.Versions(ctx, []string{"acme"})
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
