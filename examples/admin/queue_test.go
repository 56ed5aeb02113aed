package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestQueue: show says how deliveries go and what waits, queue says it for all clients, and erase removes what waits, and
// nothing of other clients.
func TestQueue(t *testing.T) {
	for _, prefix := range []string{"", "queue_"} {
		f := newFixture(t)
		at := f.stores()["sqlite"]
		f.runTyping(t.Context(), "d\n", success, "erased d (no queue with the prefix wh_; if its tables have another, run erase again with -queue)", "", "erase", at, "d")
		var flags []string
		if prefix != "" {
			flags = []string{"-queue", prefix}
		}
		command := func(name string, args ...string) []string { return append(append([]string{name}, flags...), args...) }
		if prefix != "" {
			f.run(t.Context(), failure, "", "there's none with the prefix queue_: let the service migrate, or check -queue", command("show", at, "a", "e1")...)
			f.runTyping(t.Context(), "a\n", failure, "", "or check -queue", command("erase", at, "a")...)
			f.run(t.Context(), failure, "", "or check -queue", command("queue", at)...)
		}
		f.run(t.Context(), success, "There is no queue with the prefix wh_", "", "check", at)
		f.run(t.Context(), failure, "", "webhooks.db: no queue with the prefix wh_; if its tables have another, run queue again with -queue", "queue", at)
		box := f.queue(prefix)
		f.run(t.Context(), success, "\nqueue of \"a\": 3 waiting, the first due for 1h0m0s, and no process sends to it\n", "", command("show", at, "a", "e1")...)
		f.run(t.Context(), success, "\ndeliveries: failing (status) last failure 2", "", command("show", at, "a", "e1")...)
		f.run(t.Context(), success, `"delivery":{"state":"failing","reason":"status","last_failure":"2`, "", command("show", "-json", at, "a", "e1")...)
		f.run(t.Context(), success, `"queue":{"waiting":3,"overdue_seconds":36`, "", command("show", "-json", at, "a", "e1")...)
		f.run(t.Context(), success, "waiting: 4, delivered: 0, given up: 0, dropped: 0\ndue for: 1h0m0s without an attempt, 0s for a retry, 0s of clients with a webhook that fails\n"+
			"\"a\": 3 waiting, the first due for 1h0m0s, and no process sends to it\n\"b\": 1 waiting", "", command("queue", at)...)
		f.run(t.Context(), success, `{"waiting":4,"delivered":0,"given_up":0,"dropped":0,"overdue_seconds":{"new":36`, "", command("queue", "-json", at)...)
		f.run(t.Context(), success, `"behind":[{"client":"a","waiting":3,"overdue_seconds":36`, "", command("queue", "-json", at)...)
		f.runTyping(t.Context(), "a\n", success, "erased a (3 notifications)", "", command("erase", at, "a")...)
		f.run(t.Context(), success, "queue of \"a\": nothing waiting", "", command("show", at, "a", "e1")...)
		f.run(t.Context(), success, "queue of \"b\": 1 waiting", "", command("show", at, "b", "e1")...)
		f.runTyping(t.Context(), "a\n", success, `{"erased":"a","notifications":0}`, "", command("erase", "-json", at, "a")...)
		if s, err := box.Stats(t.Context()); err != nil || s.Waiting != 1 {
			t.Errorf("%+v, %v", s, err)
		}
	}
	f := newFixture(t)
	f.run(t.Context(), failure, "", "-queue: this kind of store has no tables", "show", "-queue", "wh_", f.at("webhooks"), "a", "e1")
	f.run(t.Context(), failure, "", "this kind of store has no queue", "queue", f.at("webhooks"))
	f.runTyping(t.Context(), "a\n", success, "erased a (this kind of store has no queue)", "", "erase", f.at("webhooks"), "a")
}

// TestCheckWarnsAboutTheQueue: check has the warnings of the queue, each of them once.
func TestCheckWarnsAboutTheQueue(t *testing.T) {
	f := newFixture(t)
	place := f.path("webhooks.db")
	f.stores()
	f.queue("")
	st, err := address{"sqlite", place, ""}.open(t.Context(), openOptions{logger: slog.New(slog.DiscardHandler), bulk: true})
	if err != nil {
		t.Fatal(err)
	}
	defer st.close()
	both := st.settings
	for name, settings := range map[string]func(context.Context) ([]string, error){
		"the queue's":    func(context.Context) ([]string, error) { return nil, nil },
		"the same twice": both,
	} {
		st.settings = settings
		var out bytes.Buffer
		code, err := (&session{stdout: &out}).checkStore(t.Context(), st)
		if code != found || err != nil || strings.Count(out.String(), "synchronous") != 1 {
			t.Errorf("%s: exit code %d, %v: %s", name, code, err, &out)
		}
	}
}

// TestMissingTable: if one table is missing, check names it, and no command takes that for a
// database without a queue. The error says what helps: the service's migration.
func TestMissingTable(t *testing.T) {
	for _, table := range []string{"wh_override", "wh_delivery", "wh_outbox_schema", "wh_outbox_message", "wh_outbox_line"} {
		f := newFixture(t)
		at := f.stores()["sqlite"]
		f.queue("")
		f.run(t.Context(), success, "is readable", "", "check", at)
		db, err := sql.Open("sqlite", f.path("webhooks.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		exec := func(statements ...string) {
			t.Helper()
			for _, statement := range statements {
				if _, err := db.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
		}
		exec("DROP VIEW wh_webhook", "DROP TABLE "+table)
		for _, args := range [][]string{{"check", at}, {"queue", at}, {"show", at, "a", "e1"}} {
			f.run(t.Context(), failure, "", table+": restore it", args...)
		}
		f.runTyping(t.Context(), "a\n", failure, "", table+": restore it", "erase", at, "a")
		switch table {
		case "wh_override", "wh_delivery":
			f.run(t.Context(), failure, "", "UPDATE wh_schema SET version = 0 and let the service migrate, ", "check", at)
			exec("UPDATE wh_schema SET version = 0")
		case "wh_outbox_schema":
			f.run(t.Context(), failure, "", "if a migration was interrupted, let the service migrate\n", "check", at)
		default:
			f.run(t.Context(), failure, "", "drop the table wh_outbox_schema and let the service migrate, ", "check", at)
			exec("DROP TABLE wh_outbox_schema")
		}
		st, err := sqlstore.New(db, sqlstore.SQLite(), nil)
		if err == nil {
			err = st.Migrate(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		box, err := outbox.New(db, sqlstore.SQLite(), nil, nil)
		if err == nil {
			err = box.Migrate(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		f.run(t.Context(), success, "is readable", "", "check", at)
	}
}

// queue makes the tables of a queue next to the webhooks in SQLite, with three notifications for
// the client a, and one for b. A delivery to a has failed.
func (f fixture) queue(prefix string) *outbox.Outbox {
	f.Helper()
	db, err := sql.Open("sqlite", f.path("webhooks.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = db.Close() })
	box, err := outbox.New(db, sqlstore.SQLite(), nil, &outbox.Options{Prefix: prefix})
	if err == nil {
		err = box.Migrate(f.Context())
	}
	if err != nil {
		f.Fatal(err)
	}
	for i, client := range []string{"a", "a", "a", "b"} {
		if err := box.Enqueue(f.Context(), db, outbox.Notification{Client: client, Entity: "e1", Message: deliver.Message{ID: fmt.Sprint("m", i)}}); err != nil {
			f.Fatal(err)
		}
	}
	table := "wh_outbox_message"
	if prefix != "" {
		table = prefix + "outbox_message"
	}
	if _, err := db.ExecContext(f.Context(), "UPDATE "+table+" SET enqueued = enqueued - 3600000000 WHERE id = 'm0'"); err != nil {
		f.Fatal(err)
	}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	defer receiver.Close()
	st, err := sqlstore.New(db, sqlstore.SQLite(), nil)
	if err != nil {
		f.Fatal(err)
	}
	change := webhookcfg.SetChange("a", webhookcfg.All(), egress.NewURL(receiver.URL))
	change.Time = time.Now()
	if err := st.Apply(f.Context(), change); err != nil {
		f.Fatal(err)
	}
	health, err := deliver.NewHealth(st, nil)
	if err != nil {
		f.Fatal(err)
	}
	keys, err := deliver.DerivedKeys([]byte(strings.Repeat("k", 32)))
	if err != nil {
		f.Fatal(err)
	}
	sender, err := deliver.New(st, keys, &deliver.Options{Health: health, Policy: egress.Development()})
	if err != nil {
		f.Fatal(err)
	}
	defer sender.CloseIdleConnections()
	if r := sender.Send(f.Context(), "a", "e1", deliver.Message{ID: "m"}); r.Outcome != deliver.Failed {
		f.Fatal(r)
	}
	return box
}

// TestDamagedDatabase: check finds damage in all of an SQLite database, not only in what has webhooks. The pages
// that the other reads need are damage, too, and not another error.
func TestDamagedDatabase(t *testing.T) {
	for _, name := range []string{"wh_client", "wh_delivery", "wh_outbox_line", "wh_outbox_message", "an index"} {
		f := newFixture(t)
		at := f.stores()["sqlite"]
		f.queue("")
		f.run(t.Context(), success, "SQLite finds no damage in any table or index", "", "check", at)
		f.run(t.Context(), success, `{"read":"everything","clients":4,"webhooks":4`, "", "check", "-json", at)
		f.damagePage(name)
		stdout, stderr := "webhooks.db is damaged, so restore a backup, and before that remove the files next to it that end in -wal, -shm and -journal:\n\t", ""
		if name == "wh_client" {
			stdout, stderr = "", "malformed"
		}
		f.run(t.Context(), found, stdout, stderr, "check", at)
		if name != "wh_client" {
			f.run(t.Context(), found, `webhooks.db","damage":["`, "", "check", "-json", at)
		}
	}
}

// damagePage overwrites the first page of a table in SQLite, or of the first index of the queue.
func (f fixture) damagePage(name string) {
	f.Helper()
	db, err := sql.Open("sqlite", f.path("webhooks.db"))
	if err != nil {
		f.Fatal(err)
	}
	defer db.Close()
	var page, size int64
	const find = `SELECT rootpage, (SELECT page_size FROM pragma_page_size) FROM sqlite_schema
WHERE name = ?1 OR ?1 = 'an index' AND type = 'index' AND name LIKE 'wh_outbox%' ORDER BY name LIMIT 1`
	if err := db.QueryRowContext(f.Context(), find, name).Scan(&page, &size); err != nil {
		f.Fatalf("%s: %v", name, err)
	}
	if err := checkpoint(f.Context(), db); err != nil { // or the page would be read from the log
		f.Fatal(err)
	}
	file, err := os.OpenFile(f.path("webhooks.db"), os.O_WRONLY, 0)
	if err != nil {
		f.Fatal(err)
	}
	_, err = file.WriteAt(bytes.Repeat([]byte{0xff}, int(size)), (page-1)*size)
	if err := errors.Join(err, file.Close()); err != nil {
		f.Fatal(err)
	}
}

// TestCheckSaysWhatItRead: of other databases, check only reads the webhooks, and says so.
func TestCheckSaysWhatItRead(t *testing.T) {
	f := newFixture(t)
	f.stores()
	st, err := address{"sqlite", f.path("webhooks.db"), ""}.open(t.Context(), openOptions{logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.close()
	st.integrity = nil
	for asJSON, want := range map[bool]string{
		false: "the webhooks of " + f.path("webhooks.db") + " are readable: 4 clients with 4 webhooks; the records of deliveries and the queue weren't read\n",
		true:  `{"read":"webhooks","clients":4,"webhooks":4}`,
	} {
		var out bytes.Buffer
		if code, err := (&session{stdout: &out, json: asJSON}).checkStore(t.Context(), st); code != success || err != nil || !strings.Contains(out.String(), want) {
			t.Errorf("exit code %d, %v: %s, want %s", code, err, &out, want)
		}
	}
}
