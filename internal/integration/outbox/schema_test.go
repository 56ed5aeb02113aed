package outbox_test

import (
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// TestSchema: a migration tool can create the tables, and run the statements again when they
// are in use.
func TestSchema(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			f.prefix += "own_"
			f.box = f.peer(e, f.db, outbox.Options{})
			if _, err := f.box.Check(t.Context()); err == nil {
				t.Error("there are tables already")
			}
			migrate := func() {
				t.Helper()
				statements, err := outbox.Schema(e.dialect, f.prefix)
				if err != nil {
					t.Fatal(err)
				}
				for _, statement := range statements {
					if _, err := f.db.Exec(statement); err != nil {
						t.Fatalf("%v: %s", err, statement)
					}
				}
				if _, err := f.box.Check(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			migrate()
			f.set("a", "/")
			f.run()
			f.enqueue("a", "e", "m1")
			f.await(1, 20*time.Second)
			migrate()
			f.enqueue("a", "e", "m2")
			f.await(2, 20*time.Second)
		})
	}
	for prefix, want := range map[string]string{"a-b": "prefix", strings.Repeat("a", 100): "prefix"} {
		if _, err := outbox.Schema(engines[0].dialect, prefix); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

// TestAdvice: Check warns of the settings that package sqlstore warns of, and on MariaDB of
// transactions that never end if their process freezes.
func TestAdvice(t *testing.T) {
	warnings := func(e engineCase) string {
		f := newFixture(t, e, nil, nil)
		all, err := f.box.Check(t.Context())
		if err != nil {
			t.Fatalf("%s: %v", e.name, err)
		}
		return strings.Join(all, "\n")
	}
	for _, e := range engines {
		setting := map[string]string{"SQLite": "secure_delete", "PostgreSQL": "idle_in_transaction_session_timeout", "MariaDB": "idle_write_transaction_timeout"}[e.name]
		if got := warnings(e); strings.Count(got, setting) != 1 {
			t.Errorf("%s: no warning of %s, or several: %s", e.name, setting, got)
		}
		if e.name == "MariaDB" {
			dsn := e.dsn
			e.dsn = func(t testing.TB) string { return dsn(t) + "&idle_write_transaction_timeout=4" }
			if got := warnings(e); strings.Contains(got, setting) {
				t.Errorf("with the setting: %s", got)
			}
		}
	}
}
