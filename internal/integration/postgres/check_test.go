package postgres

import (
	"database/sql"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/sqlstore"
)

// TestCheck: each setting that loses changes or fails under load has a warning.
func TestCheck(t *testing.T) {
	t.Parallel()
	direct := shared.Get(t).DSN()
	tables(t, direct, "check_")
	idle := having("idle_in_transaction_session_timeout", "5000")
	for name, tt := range map[string]struct {
		open func(t testing.TB, dsn string) *sql.DB
		want []string
	}{
		"pgx":                  {sqltest.Driver("pgx", idle), nil},
		"pgx, simple protocol": {sqltest.Driver("pgx", idle, having("default_query_exec_mode", "simple_protocol")), nil},
		"lib/pq":               {sqltest.Driver("postgres", idle), nil},
		"defaults":             {sqltest.Driver("pgx"), []string{"idle_in_transaction_session_timeout"}},
		"asynchronous":         {sqltest.Driver("pgx", idle, having("synchronous_commit", "off")), []string{"turn synchronous_commit on"}},
		"read-only":            {sqltest.Driver("pgx", idle, having("default_transaction_read_only", "on")), []string{"read-only"}},
	} {
		t.Run(name, func(t *testing.T) {
			db := tt.open(t, direct)
			st, err := sqlstore.New(db, sqlstore.PostgreSQL(), &sqlstore.Options{Prefix: "check_"})
			if err != nil {
				t.Fatal(err)
			}
			want := append([]string{"turn fsync"}, tt.want...) // the tests' server runs without fsync
			expectWarnings(t, st, want)
			db.SetMaxOpenConns(10_000)
			expectWarnings(t, st, append(want, "max_connections"))
		})
	}
}

func expectWarnings(t *testing.T, st *sqlstore.Store, want []string) {
	t.Helper()
	got, err := st.Check(t.Context())
	if err != nil || len(got) != len(want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	for _, text := range want {
		if !strings.Contains(strings.Join(got, "\n"), text) {
			t.Errorf("got %q, want one with %q", got, text)
		}
	}
}

// TestCheckBehindAPooler: who connects through a pooler can do what the warning about idle
// transactions says, although the pooler refuses the setting in a DSN.
func TestCheckBehindAPooler(t *testing.T) {
	t.Parallel()
	server := shared.Get(t)
	admin := sqltest.Driver("pgx")(t, server.DSN())
	if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE pooled"); err != nil {
		t.Fatal(err)
	}
	tables(t, database("pooled")(t, server.DSN()), "pooled_")
	warned := func() bool {
		t.Helper()
		pooled := sqltest.Driver("pgx", database("pooled"), having("default_query_exec_mode", "exec"))
		st, err := sqlstore.New(pooled(t, engine.PgBouncer(t, server).DSN()), sqlstore.PostgreSQL(), &sqlstore.Options{Prefix: "pooled_"})
		if err != nil {
			t.Fatal(err)
		}
		warnings, err := st.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(warnings, func(w string) bool { return strings.Contains(w, "behind a pooler, with ALTER ROLE") })
	}
	if !warned() {
		t.Error("no warning says what to do behind a pooler")
	}
	if _, err := admin.ExecContext(t.Context(), "ALTER ROLE CURRENT_USER IN DATABASE pooled SET idle_in_transaction_session_timeout = '5s'"); err != nil {
		t.Fatal(err)
	}
	if warned() {
		t.Error("the warning is still there")
	}
}
