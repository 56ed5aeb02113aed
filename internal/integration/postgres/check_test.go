package postgres

import (
	"database/sql"
	"strings"
	"testing"

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
