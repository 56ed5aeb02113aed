package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// schema returns the statements that create the tables, and the one that then sets their version.
func (f *fixture) schema(e engineCase) (create []string, complete string) {
	f.t.Helper()
	all, err := outbox.Schema(e.dialect, f.prefix)
	if err != nil {
		f.t.Fatal(err)
	}
	return all[:len(all)-1], all[len(all)-1]
}

func (f *fixture) execute(statements ...string) {
	f.t.Helper()
	for _, statement := range statements {
		if _, err := f.db.ExecContext(f.t.Context(), statement); err != nil {
			f.t.Fatalf("%v: %s", err, statement)
		}
	}
}

var tables = []string{"schema", "message", "line", "pause", "mark", "process", "again"}

// complaints are the errors that the queue logs because it can't start.
type complaints chan string

func (c complaints) logger(t testing.TB) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if err, ok := a.Value.Any().(error); ok && strings.Contains(err.Error(), "incomplete") {
			c <- err.Error()
		}
		return a
	}}))
}

// TestRestore: a backup is restored under a running queue, which drops all tables, creates them
// and fills them. Run waits until they're complete, and goes on.
func TestRestore(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			logged := make(complaints, 100)
			box, err := outbox.New(f.db, e.dialect, f.sender, &outbox.Options{Prefix: f.prefix, Logger: logged.logger(t)})
			if err != nil {
				t.Fatal(err)
			}
			f.box = box
			f.set("a", "/")
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- box.Run(ctx) }()
			f.enqueue("a", "e", "before")
			f.await(1, time.Minute)

			for _, table := range tables {
				f.execute("DROP TABLE " + f.prefix + "outbox_" + table)
			}
			if err := f.box.Healthy(t.Context()); !errors.Is(err, outbox.ErrNoTables) {
				t.Errorf("healthy without tables: %v", err)
			}
			create, complete := f.schema(e)
			f.execute(create...)
			select {
			case <-logged: // it has lost its lease with the tables, and found them incomplete
			case err := <-ended:
				t.Fatalf("Run has ended: %v", err)
			case <-time.After(time.Minute):
				t.Fatal("Run has not noticed")
			}
			f.execute(complete)
			f.enqueue("a", "e", "after")
			f.await(2, time.Minute)
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMissingTable: if one table is missing, everything that looks at the tables names it, and says
// how to go on. That isn't the error for a database without a queue.
func TestMissingTable(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			for _, table := range tables {
				f := newFixture(t, e, nil, nil)
				name := f.prefix + "outbox_" + table
				f.execute("DROP TABLE " + name)
				migrates := table == "schema"
				calls := map[string]func() error{
					"Check":   func() error { _, err := f.box.Check(t.Context()); return err },
					"Healthy": func() error { return f.peer(e, f.db, outbox.Options{}).Healthy(t.Context()) },
					"Run":     func() error { return f.box.Run(t.Context()) },
				}
				if !migrates {
					calls["Migrate"] = func() error { return f.box.Migrate(t.Context()) }
				}
				for call, do := range calls {
					if err := do(); err == nil || errors.Is(err, outbox.ErrNoTables) || !strings.Contains(err.Error(), name+": restore it from a backup, and all of ") {
						t.Errorf("%s without %s: %v", call, name, err)
					}
				}
				if !migrates {
					f.execute("DROP TABLE " + f.prefix + "outbox_schema") // as the error says
				}
				if err := f.box.Migrate(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if err := f.peer(e, f.db, outbox.Options{}).Healthy(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// TestHealthyAfterRun: a queue whose Run has ended with an error isn't healthy, whatever became of the
// cause, until it runs again.
func TestHealthyAfterRun(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			f.set("a", "/")
			for _, table := range tables {
				f.execute("DROP TABLE " + f.prefix + "outbox_" + table)
			}
			ended := f.box.Run(t.Context())
			if !errors.Is(ended, outbox.ErrNoTables) {
				t.Fatalf("Run without tables: %v", ended)
			}
			if err := f.box.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := f.box.Healthy(t.Context()); !errors.Is(err, ended) || !strings.Contains(err.Error(), "Run has ended") {
				t.Errorf("while nothing is sent: %v", err)
			}
			f.run()
			f.enqueue("a", "e", "m")
			f.await(1, time.Minute)
			if err := f.box.Healthy(t.Context()); err != nil {
				t.Errorf("running again: %v", err)
			}
		})
	}
}

// TestMissingKey: a restore of PostgreSQL creates the keys last, and pg_restore -t leaves them out.
// Without them nothing keeps a client from having two lines, or a notification from being there
// twice, so the queue doesn't work with such tables.
func TestMissingKey(t *testing.T) {
	for _, e := range engines {
		if e.name != "PostgreSQL" {
			continue // their dumps create tables with their keys
		}
		f := newFixture(t, e, nil, nil)
		for _, table := range tables {
			name := f.prefix + "outbox_" + table
			var key, definition string
			const find = "SELECT conname, pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'p' AND conrelid = to_regclass($1)"
			if err := f.db.QueryRowContext(t.Context(), find, name).Scan(&key, &definition); err != nil {
				t.Fatal(err)
			}
			f.execute("ALTER TABLE " + name + " DROP CONSTRAINT " + key)
			peer := f.peer(e, f.db, outbox.Options{})
			for call, do := range map[string]func() error{
				"Check":   func() error { _, err := peer.Check(t.Context()); return err },
				"Healthy": func() error { return peer.Healthy(t.Context()) },
				"Run":     func() error { return peer.Run(t.Context()) },
				"Migrate": func() error { return peer.Migrate(t.Context()) },
			} {
				if err := do(); err == nil || !strings.Contains(err.Error(), "primary keys are missing: "+name+":") {
					t.Errorf("%s without the key of %s: %v", call, name, err)
				}
			}
			f.execute("ALTER TABLE " + name + " ADD CONSTRAINT " + key + " " + definition)
			if err := f.peer(e, f.db, outbox.Options{}).Healthy(t.Context()); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// TestLostLines: after the table of lines was lost and created again, what waits is sent, also if
// its client gets no other notification.
func TestLostLines(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			f.set("a", "/")
			f.enqueue("a", "e", "m1", "m2")
			f.execute(
				"UPDATE "+f.prefix+"outbox_message SET grp = 4001, attempts = 1, due = 1",
				"DROP TABLE "+f.prefix+"outbox_line", "DROP TABLE "+f.prefix+"outbox_schema",
			)
			if err := f.box.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			f.run()
			f.await(2, time.Minute)
		})
	}
}

// TestReadOnly: a queue whose tables are all there isn't healthy while the database refuses changes.
func TestReadOnly(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			db := open(t, e.driver, f.dsn)
			db.SetMaxOpenConns(1) // the statement is for a connection
			box := f.peer(e, db, outbox.Options{})
			if err := box.Healthy(t.Context()); err != nil {
				t.Fatal(err)
			}
			statement := map[string]string{
				"SQLite": "PRAGMA query_only = 1", "PostgreSQL": "SET default_transaction_read_only = on", "MariaDB": "SET SESSION TRANSACTION READ ONLY",
			}[e.name]
			if _, err := db.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			box = f.peer(e, db, outbox.Options{}) // with no result of a moment ago
			if err := box.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "outbox: changes fail: ") {
				t.Errorf("on a read-only database: %v", err)
			}
		})
	}
}

// TestInsertsFail: if rows can't be inserted, since a restore has left out what that needs, Healthy and
// Check say so, and what they say to run helps.
func TestInsertsFail(t *testing.T) {
	e := engines[1] // PostgreSQL
	for name, statement := range map[string]string{
		"unique key":      "ALTER TABLE %s DROP CONSTRAINT %[1]s_client_id_key",
		"identity":        "ALTER TABLE %s ALTER seq DROP IDENTITY",
		"sequence":        "ALTER TABLE %s ALTER seq RESTART WITH 1",
		"unused sequence": "ALTER TABLE %s ALTER seq DROP IDENTITY; ALTER TABLE %[1]s ALTER seq ADD GENERATED BY DEFAULT AS IDENTITY",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			if err := f.peer(e, f.db, outbox.Options{}).Healthy(t.Context()); err != nil {
				t.Fatalf("without a row: %v", err)
			}
			f.set("a", "/")
			f.enqueue("a", "e", "m1", "m2")
			f.execute(fmt.Sprintf(statement, f.prefix+"outbox_message"))
			for range 3 {
				err := f.peer(e, f.db, outbox.Options{}).Healthy(t.Context())
				if _, checked := f.box.Check(t.Context()); err == nil || checked == nil || checked.Error() != err.Error() {
					t.Fatalf("Healthy: %v; Check: %v", err, checked)
				}
				_, remedy, ok := strings.Cut(err.Error(), "; otherwise run ")
				if !ok {
					t.Fatal(err)
				}
				f.execute(remedy)
				if err = f.peer(e, f.db, outbox.Options{}).Healthy(t.Context()); err == nil {
					break
				}
			}
			f.enqueue("a", "e", "m3")
			f.run()
			f.await(3, time.Minute)

			f.execute("ALTER TABLE " + f.prefix + "outbox_message ALTER seq RESTART WITH 1000") // as after a switchover
			if err := f.peer(e, f.db, outbox.Options{}).Healthy(t.Context()); err != nil {
				t.Errorf("with a sequence that's ahead: %v", err)
			}
			f.execute("ALTER TABLE "+f.prefix+"outbox_message ALTER seq DROP IDENTITY", "CREATE SEQUENCE "+f.prefix+"own START 1000", "ALTER TABLE "+f.prefix+"outbox_message ALTER seq SET DEFAULT nextval('"+f.prefix+"own')")
			if err := f.peer(e, f.db, outbox.Options{}).Healthy(t.Context()); err != nil {
				t.Errorf("with a sequence of somebody's own: %v", err)
			}
			f.enqueue("a", "e", "m4")
			f.await(4, time.Minute)
		})
	}
}

// TestMayNotInsert: a queue whose user may change its rows, but not insert any, isn't healthy.
func TestMayNotInsert(t *testing.T) {
	e := engines[1] // PostgreSQL
	f := newFixture(t, e, nil, nil)
	user := strings.TrimSuffix(f.prefix, "_") + "_limited"
	f.execute("CREATE ROLE "+user, "GRANT USAGE ON SCHEMA public TO "+user)
	for _, table := range tables {
		f.execute("GRANT SELECT, UPDATE, DELETE ON " + f.prefix + "outbox_" + table + " TO " + user)
	}
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + user, "DROP ROLE " + user} {
			if _, err := f.db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
				t.Error(err)
			}
		}
	})
	db := open(t, e.driver, f.dsn)
	db.SetMaxOpenConns(1) // the statement is for a connection
	if _, err := db.ExecContext(t.Context(), "SET ROLE "+user); err != nil {
		t.Fatal(err)
	}
	if err := f.peer(e, db, outbox.Options{}).Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "outbox: changes fail: ") {
		t.Errorf("without the privilege to insert: %v", err)
	}
}

// TestInterruptedMigration: Migrate completes what an interrupted one has left.
func TestInterruptedMigration(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			create, _ := f.schema(e)
			for n := range len(create) + 1 {
				f.prefix = fmt.Sprintf("i%d_%d_", prefixes.Add(1), n)
				create, _ := f.schema(e)
				f.execute(create[:n]...)
				box, err := outbox.New(f.db, e.dialect, f.sender, &outbox.Options{Prefix: f.prefix, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
				if err != nil {
					t.Fatal(err)
				}
				if err := box.Healthy(t.Context()); err == nil || !strings.Contains(err.Error(), "call Migrate") {
					t.Errorf("after %d statements: %v", n, err)
				}
				if err := box.Migrate(t.Context()); err != nil {
					t.Errorf("after %d statements: %v", n, err)
				}
			}
		})
	}
}
