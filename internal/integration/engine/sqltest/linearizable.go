package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// hot has fewer histories than linearizable.Hot. Operations on a server take longer than in
// memory, so more of them overlap.
func hot() linearizable.Workload {
	workload := linearizable.Hot()
	workload.Histories = 12
	return workload
}

func spread() linearizable.Workload {
	workload := linearizable.Spread()
	workload.Operations, workload.Histories = 15, 6
	return workload
}

func (e Engine) linearizable(t *testing.T) {
	dsn := e.Shared(t).DSN()
	for name, workload := range map[string]linearizable.Workload{"hot": hot(), "spread": spread()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			linearizable.Check(t, workload, func(t testing.TB) []linearizable.Store { return e.replicas(t, dsn) })
		})
	}
}

// broken checks that stores are caught that read a generation before they write.
func (e Engine) broken(t *testing.T) {
	dsn := e.Shared(t).DSN()
	workload := spread()
	workload.Clients, workload.Histories = 6, 100 // it stops at the first failure
	for name, inTransaction := range map[string]bool{"two statements": false, "transaction": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			linearizable.MustFail(t, workload, func(t testing.TB) []linearizable.Store {
				return e.naiveReplicas(t, dsn, inTransaction)
			})
		})
	}
}

// naive is the obvious implementation. It reads the client's generation and writes the
// override with it, but the generation may be out of date by then.
type naive struct {
	db            *sql.DB
	sql           naiveSQL
	inTransaction bool
}

// quota limits a client's overrides. It's an example of a lookup before a change.
const quota = 1000

// naiveSQL has the statements of naive.
type naiveSQL struct {
	create                        []string
	setAll, gen, count, put, list string
}

// newNaiveSQL returns the statements for MySQL or PostgreSQL.
func newNaiveSQL(prefix string, isMySQL bool) naiveSQL {
	s := naiveSQL{
		create: []string{
			`CREATE TABLE #client (id VARBINARY(100) PRIMARY KEY, gen BIGINT, url TEXT, since BIGINT)`,
			`CREATE TABLE #override (client VARBINARY(100), entity VARBINARY(100), gen BIGINT, url TEXT, since BIGINT, PRIMARY KEY (client, entity))`,
		},
		setAll: `INSERT INTO #client VALUES (?, 1, ?, ?)
ON DUPLICATE KEY UPDATE gen = gen + 1, url = VALUES(url), since = VALUES(since)`,
		gen:   `SELECT gen FROM #client WHERE id = ?`,
		count: `SELECT COUNT(*) FROM #override WHERE client = ?`,
		put: `INSERT INTO #override VALUES (?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE gen = VALUES(gen), url = VALUES(url), since = VALUES(since)`,
		list: `SELECT '', url, since FROM #client WHERE id = ? UNION ALL
SELECT entity, url, since FROM #override WHERE client = ? AND gen = COALESCE((SELECT gen FROM #client WHERE id = ?), 0) ORDER BY 1`,
	}
	if !isMySQL {
		s.create[0] = strings.ReplaceAll(s.create[0], "VARBINARY(100)", "text")
		s.create[1] = strings.ReplaceAll(s.create[1], "VARBINARY(100)", "text")
		s.setAll = `INSERT INTO #client AS c VALUES (?, 1, ?, ?)
ON CONFLICT (id) DO UPDATE SET gen = c.gen + 1, url = EXCLUDED.url, since = EXCLUDED.since`
		s.put = `INSERT INTO #override VALUES (?, ?, ?, ?, ?)
ON CONFLICT (client, entity) DO UPDATE SET gen = EXCLUDED.gen, url = EXCLUDED.url, since = EXCLUDED.since`
	}
	for _, text := range []*string{&s.create[0], &s.create[1], &s.setAll, &s.gen, &s.count, &s.put, &s.list} {
		*text = strings.ReplaceAll(*text, "#", prefix)
		for n := 1; !isMySQL && strings.Contains(*text, "?"); n++ {
			*text = strings.Replace(*text, "?", "$"+strconv.Itoa(n), 1)
		}
	}
	return s
}

func (e Engine) naiveReplicas(t testing.TB, dsn string, inTransaction bool) (all []linearizable.Store) {
	t.Helper()
	admin := e.Open(t, dsn)
	statements := newNaiveSQL(prefix(t, admin), e.Dialect == sqlstore.MySQL())
	for _, create := range statements.create {
		execute(t, admin, create)
	}
	for range replicaCount {
		all = append(all, naive{e.Open(t, dsn), statements, inTransaction})
	}
	return all
}

func execute(t testing.TB, db *sql.DB, statement string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// session is a database or a transaction.
type session interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (n naive) Apply(ctx context.Context, c webhookcfg.Change) error {
	if c.Scope.IsAll() {
		_, err := n.db.ExecContext(ctx, n.sql.setAll, c.Client, c.URL.Reveal(), c.Time.UnixMicro())
		return err
	}
	if !n.inTransaction {
		return n.put(ctx, n.db, c)
	}
	tx, err := n.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	if err := n.put(ctx, tx, c); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func (n naive) put(ctx context.Context, db session, c webhookcfg.Change) error {
	var gen int64
	err := db.QueryRowContext(ctx, n.sql.gen, c.Client).Scan(&gen)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	var overrides int
	if err := db.QueryRowContext(ctx, n.sql.count, c.Client).Scan(&overrides); err != nil {
		return err
	}
	if overrides > quota {
		return errors.New("too many overrides")
	}
	_, err = db.ExecContext(ctx, n.sql.put, c.Client, c.Scope.Entity(), gen, c.URL.Reveal(), c.Time.UnixMicro())
	return err
}

func (n naive) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	page, err := n.List(ctx, client, "", 1)
	for _, o := range page.Overrides {
		if o.Entity == entity {
			return o.Webhook, err
		}
	}
	return page.Base, err
}

// List returns the whole configuration of a client.
func (n naive) List(ctx context.Context, client, _ string, _ int) (page webhookcfg.Page, err error) {
	rows, err := n.db.QueryContext(ctx, n.sql.list, client, client, client)
	if err != nil {
		return page, err
	}
	defer rows.Close()
	for rows.Next() {
		var (
			entity, url string
			since       int64
		)
		if err := rows.Scan(&entity, &url, &since); err != nil {
			return page, err
		}
		addTo(&page, entity, webhookcfg.Webhook{URL: egress.NewURL(url), Since: time.UnixMicro(since)})
	}
	return page, rows.Err()
}

// addTo adds an override, or the base if the entity is empty. An override can only be off if
// there's a base.
func addTo(page *webhookcfg.Page, entity string, hook webhookcfg.Webhook) {
	hasURL := !hook.URL.IsZero()
	switch {
	case entity == "" && hasURL:
		hook.Source = webhookcfg.SourceBase
		page.Base = hook
	case entity != "" && hasURL:
		hook.Source = webhookcfg.SourceOverride
		page.Overrides = append(page.Overrides, webhookcfg.Override{Entity: entity, Webhook: hook})
	case entity != "" && page.Base.Source == webhookcfg.SourceBase:
		hook.Source = webhookcfg.SourceOff
		page.Overrides = append(page.Overrides, webhookcfg.Override{Entity: entity, Webhook: hook})
	}
}
