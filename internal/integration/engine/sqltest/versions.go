package sqltest

import (
	"context"
	"database/sql"
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

// versions has equal versions mean equal answers.
func (e Engine) versions(t *testing.T) {
	dsn := e.Shared.Get(t).DSN()
	if err := compareVersions(t, e.fresh(t, dsn), nil); err != nil {
		t.Error(err)
	}
	t.Run("a generation is no version", func(t *testing.T) {
		db := e.open(t, dsn)
		name := prefix(t, db)
		st := e.store(t, db, name)
		migrate(t, st)
		if err := compareVersions(t, st, generations{db, name}); err == nil {
			t.Error("that was not noticed")
		}
	})
}

// generations is a wrong Versioner: a set of one entity begins no generation.
type generations struct {
	db     *sql.DB
	prefix string
}

func (g generations) Versions(ctx context.Context, _ []string) ([]string, error) {
	var version string
	err := g.db.QueryRowContext(ctx, "SELECT COALESCE(MAX(gen), 0) FROM "+g.prefix+"client").Scan(&version)
	return []string{version}, err
}

// answers are what an entity resolved to while its client had a version.
type answers struct {
	mu     sync.Mutex
	seen   map[string]string
	agreed int
}

// compareVersions has readers see, of one client, versions and answers while others
// change it. Nil means the versions of the store.
func compareVersions(t *testing.T, st *sqlstore.Store, versioner cache.Versioner) error {
	t.Helper()
	if versioner == nil {
		versioner = st
	}
	const workers, each = 3, 80
	seen := answers{seen: make(map[string]string)}
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
				if err := seen.look(ctx, st, versioner); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := group.Wait()
	t.Logf("%d answers, of which %d agreed with an earlier one", len(seen.seen), seen.agreed)
	return err
}

// look resolves between two questions for the version.
func (a *answers) look(ctx context.Context, st *sqlstore.Store, versioner cache.Versioner) error {
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
	key, answer := entity+" at "+before[0], fmt.Sprint(hook.Source, hook.URL.Reveal(), hook.Since)
	earlier, ok := a.seen[key]
	if ok && earlier != answer {
		return fmt.Errorf("%s resolved to %s, and to %s", key, earlier, answer)
	}
	if ok {
		a.agreed++
	}
	a.seen[key] = answer
	return nil
}

// anyChange is a random change of a client, to which n gives a URL and a time of
// its own.
func anyChange(client string, n int) webhookcfg.Change {
	scope := webhookcfg.Entity("e" + strconv.Itoa(rand.IntN(2)))
	if rand.IntN(4) == 0 {
		scope = webhookcfg.All()
	}
	c := webhookcfg.Unset(client, scope)
	if rand.IntN(3) > 0 {
		c = webhookcfg.Set(client, scope, egress.NewURL("https://h.example.com/"+strconv.Itoa(n)))
	}
	c.Time = time.Unix(int64(n+1), 0)
	return c
}
