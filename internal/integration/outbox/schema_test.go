package outbox_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/go-webhookcfg/internal/dialect"
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

// TestFormerTables: tables of the queue that came before this one are left as they are, whether or not
// they're complete. The error says what to do, and that works: another prefix, or dropping them once
// nothing waits.
func TestFormerTables(t *testing.T) {
	for _, e := range engines {
		file := map[string]string{"SQLite": "sqlite.sql", "PostgreSQL": "postgresql.sql", "MariaDB": "mysql.sql"}[e.name]
		text, err := os.ReadFile("testdata/version1/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, lost := range []string{"nothing", "again", "line", "message", "nothing, but a tool has run Schema"} {
			t.Run(e.name+" lost "+lost, func(t *testing.T) {
				f := newFixture(t, e, nil, nil)
				f.prefix = fmt.Sprintf("former%d_", prefixes.Add(1))
				f.execute(dialect.Schema(string(text), f.prefix)...)
				f.exec("INSERT INTO {message} (client, entity, id, state, due, enqueued, since, attempts, status, reason, content_type, body) VALUES (",
					e.bytes("a"), ", ", e.bytes("e"), ", 'm', 0, 1, 1, 1, 0, 0, '', '', ", e.bytes("{}"), ")")
				switch {
				case strings.Contains(lost, "Schema"):
					create, complete := f.schema(e)
					for _, statement := range append(create, complete) {
						_, _ = f.db.ExecContext(t.Context(), statement) // some tools go on after an error
					}
				case lost != "nothing":
					f.execute("DROP TABLE " + f.prefix + "outbox_" + lost)
				}
				before := f.columns(e)
				for call, do := range map[string]func(box *outbox.Outbox) error{
					"Check":   func(box *outbox.Outbox) error { _, err := box.Check(t.Context()); return err },
					"Healthy": func(box *outbox.Outbox) error { return box.Healthy(t.Context()) },
					"Migrate": func(box *outbox.Outbox) error { return box.Migrate(t.Context()) },
					"Run":     func(box *outbox.Outbox) error { return box.Run(t.Context()) },
				} {
					err := do(f.peer(e, f.db, outbox.Options{}))
					if err == nil || errors.Is(err, outbox.ErrNoTables) || errors.Is(err, outbox.ErrNewerSchema) || !strings.Contains(err.Error(), "of an earlier version") || !strings.Contains(err.Error(), f.prefix+"outbox_") {
						t.Errorf("%s: %v", call, err)
					}
				}
				if diff := gocmp.Diff(before, f.columns(e)); diff != "" {
					t.Errorf("the tables have changed: -before +after:\n%s", diff)
				}
				var version, processes, waiting int
				for count, n := range map[string]*int{"SELECT version FROM %soutbox_schema": &version, "SELECT COUNT(*) FROM %soutbox_process": &processes, "SELECT COUNT(*) FROM %soutbox_message WHERE state = 0 AND attempts = 0": &waiting} {
					if lost == "message" && n == &waiting {
						continue
					}
					if err := f.db.QueryRow(fmt.Sprintf(count, f.prefix)).Scan(n); err != nil {
						t.Fatal(err)
					}
				}
				if version != 1 || processes != 0 || lost != "message" && waiting != 1 {
					t.Errorf("version %d, %d processes, %d are waiting", version, processes, waiting)
				}

				former := f.prefix
				f.prefix += "new_"
				f.sendOne(e, "other prefix")
				f.prefix = former
				for _, table := range tables {
					f.execute("DROP TABLE IF EXISTS " + f.prefix + "outbox_" + table)
				}
				f.sendOne(e, "dropped")
			})
		}
	}
}

// sendOne migrates, and sends a notification.
func (f *fixture) sendOne(e engineCase, id string) {
	f.t.Helper()
	id = strings.ReplaceAll(id, " ", "_")
	f.box = f.peer(e, f.db, outbox.Options{})
	if err := f.box.Migrate(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.set("a", "/")
	stop := f.run()
	f.enqueue("a", "e", id)
	f.awaitArrivals(id, 1)
	stop()
}

// columns returns the columns of all tables with the prefix.
func (f *fixture) columns(e engineCase) (all []string) {
	f.t.Helper()
	query := map[string]string{
		"SQLite":     "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.name LIKE '%s%%' AND m.type IN ('table', 'index')",
		"PostgreSQL": "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 WHERE c.relname LIKE '%s%%'",
		"MariaDB":    "SELECT table_name, column_name FROM information_schema.columns WHERE table_name LIKE '%[1]s%%' UNION ALL SELECT table_name, CONCAT(index_name, column_name) FROM information_schema.statistics WHERE table_name LIKE '%[1]s%%'",
	}[e.name]
	rows, err := f.db.QueryContext(f.t.Context(), fmt.Sprintf(query, f.prefix))
	if err != nil {
		f.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			f.t.Fatal(err)
		}
		all = append(all, table+" "+column)
	}
	if err := rows.Err(); err != nil || len(all) < 10 {
		f.t.Fatalf("%q, %v", all, err)
	}
	slices.Sort(all)
	return all
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
