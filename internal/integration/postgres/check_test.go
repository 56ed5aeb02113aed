package postgres

import (
	"database/sql"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/engine/sqltest"
	"example.com/go-webhookcfg/store/sqlstore"
)

// TestCheck: each setting that loses changes or fails under load has a warning. Prepared
// statements behind a pooler have one too, unless you've told the driver about it.
func TestCheck(t *testing.T) {
	t.Parallel()
	direct := shared.Get(t).DSN()
	pooled := engine.PgBouncer(t, shared.Get(t)).DSN()
	tables(t, direct, "check_")
	idle := having("idle_in_transaction_session_timeout", "5000")
	for name, tt := range map[string]struct {
		open func(t testing.TB, dsn string) *sql.DB
		dsn  string
		want []string
	}{
		"pgx":                    {sqltest.Driver("pgx", idle), direct, nil},
		"pgx, simple protocol":   {sqltest.Driver("pgx", idle, having("default_query_exec_mode", "simple_protocol")), direct, nil},
		"lib/pq":                 {sqltest.Driver("postgres", idle), direct, nil},
		"defaults":               {sqltest.Driver("pgx"), direct, []string{"idle_in_transaction_session_timeout"}},
		"asynchronous":           {sqltest.Driver("pgx", idle, having("synchronous_commit", "off")), direct, []string{"turn synchronous_commit on"}},
		"read-only":              {sqltest.Driver("pgx", idle, having("default_transaction_read_only", "on")), direct, []string{"read-only"}},
		"pooled, pgx":            {sqltest.Driver("pgx"), pooled, []string{"default_query_exec_mode=exec", "idle"}},
		"pooled, pgx, exec":      {sqltest.Driver("pgx", having("default_query_exec_mode", "exec")), pooled, []string{"idle"}},
		"pooled, lib/pq, binary": {sqltest.Driver("postgres", having("binary_parameters", "yes")), pooled, []string{"idle"}},
	} {
		t.Run(name, func(t *testing.T) {
			db := tt.open(t, tt.dsn)
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
