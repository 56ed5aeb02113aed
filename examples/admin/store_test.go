package main

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// stores are addresses of stores with the same content: a file, and its copy in SQLite.
func (f fixture) stores() map[string]string {
	f.Helper()
	f.run(f.Context(), success, "4 clients with 4 webhooks, 4 changes", "", "copy", "-migrate", f.at("webhooks"), f.inSQLite("webhooks"))
	return map[string]string{"file": f.at("webhooks"), "sqlite": f.inSQLite("webhooks")}
}

// inSQLite returns the address of a database.
func (f fixture) inSQLite(name string) string { return "sqlite:" + f.path(name+".db") }

func TestLists(t *testing.T) {
	f := newFixture(t)
	for name, at := range f.stores() {
		t.Run(name, func(t *testing.T) {
			f := fixture{t, f.dir}
			f.run(t.Context(), success, "a\nb\nc\nd\n", "", "clients", at)
			f.run(t.Context(), success, `{"client":"a"}`+"\n", "", "clients", "-json", at)
			f.run(t.Context(), success, "default: https://example.com since 0001-01-01T00:00:00Z\n", "", "list", at, "a")
			f.run(t.Context(), success, "", "", "list", at, "nobody")
			f.run(t.Context(), success, "entity e1: default https://example.com since", "", "show", at, "a", "e1")
			f.run(t.Context(), success, `"source":"base","url":"https://example.com","since":"0001-01-01T00:00:00Z"}`+"\n", "", "show", "-json", at, "a", "e1")
			f.run(t.Context(), success, "entity e1: none\n", "", "show", at, "nobody", "e1")
			out := f.output("list", "-urls", at, "a")
			if !strings.Contains(out, secret) {
				t.Errorf("-urls shows no URL in full: %s", out)
			}
		})
	}
}

func TestCopy(t *testing.T) {
	f := newFixture(t)
	at := f.stores()
	f.run(t.Context(), failure, "", "-replace", "copy", at["file"], at["sqlite"])
	f.run(t.Context(), success, "compared: 4 clients with 4 webhooks in 0s; different: 0\n", "", "verify", at["file"], at["sqlite"])
	f.run(t.Context(), success, "4 webhooks, 4 changes", "", "copy", "-migrate", at["sqlite"], f.at("export"))
	f.apply(f.at("export"), webhookcfg.UnsetChange("a", webhookcfg.All()), webhookcfg.UnsetChange("b", webhookcfg.Entity("e1")), setAll("x"))
	f.run(t.Context(), found, "different: 3\n", "", "verify", at["sqlite"], f.at("export"))
	f.run(t.Context(), found, `{"want":{"client":"b","entity":"e1","source":"none"},"got":{"client":"b","entity":"e1","source":"off",`, "",
		"verify", "-json", at["sqlite"], f.at("export"))
	f.runTyping(t.Context(), f.path("export"), success, "4 webhooks, 3 changes", "", "copy", "-replace", at["sqlite"], f.at("export"))
	f.run(t.Context(), success, "is a copy of", "", "backup", f.at("webhooks"), f.at("first"))
	f.run(t.Context(), success, "is a copy of", "", "backup", f.at("export"), f.at("last"))
	if first, last := f.read("first"), f.read("last"); first != last {
		t.Errorf("the export is %q, want %q", last, first)
	}
}

// read returns the content of a file.
func (f fixture) read(name string) string {
	f.Helper()
	content, err := os.ReadFile(f.path(name))
	if err != nil {
		f.Fatal(err)
	}
	return string(content)
}

// TestSameStore: a store is equal to itself, so a comparison with it would say nothing.
func TestSameStore(t *testing.T) {
	f := newFixture(t)
	t.Chdir(f.dir)
	f.stores()
	for _, pair := range [][]string{
		{f.at("webhooks"), f.at("webhooks")},
		{f.at("webhooks"), "file:./webhooks"},
		{f.inSQLite("webhooks"), f.inSQLite("webhooks")},
		{"sqlite:webhooks.db", f.inSQLite("webhooks")},
	} {
		for _, command := range []string{"verify", "copy"} {
			f.run(t.Context(), wrongUsage, "", "the same store", append([]string{command}, pair...)...)
		}
	}
	f.run(t.Context(), success, "4 changes", "", "copy", "-migrate", "-to-prefix", "x_", f.inSQLite("webhooks"), f.inSQLite("webhooks"))
	f.run(t.Context(), success, "different: 0", "", "verify", "-to-prefix", "x_", f.inSQLite("webhooks"), f.inSQLite("webhooks"))
}

// TestReplace: what only the target has is lost after its name was typed, and otherwise nothing.
func TestReplace(t *testing.T) {
	f := newFixture(t)
	at := f.stores()
	f.runTyping(t.Context(), f.path("webhooks")+"\n", failure, "", "not confirmed", "copy", "-replace", at["file"], at["sqlite"])
	f.run(t.Context(), failure, "", "not confirmed", "copy", "-replace", at["file"], at["sqlite"])
	f.runTyping(t.Context(), f.path("webhooks.db")+"\n", success, "4 webhooks, 0 changes", "loses what only it has", "copy", "-replace", at["file"], at["sqlite"])
}

// TestRefusedName: a name that the target can't have is reported, and the rest is copied.
func TestRefusedName(t *testing.T) {
	f := newFixture(t)
	at := f.stores()
	f.apply(at["sqlite"], setAll("\xff"))
	f.run(t.Context(), found, "refused: 1\nrefused: \"\\xff\", default: want default https://example.com", "", "copy", "-migrate", at["sqlite"], f.at("export"))
	if got := f.clients("export"); got != "abcd" {
		t.Errorf("copied were the clients %q", got)
	}
	f.run(t.Context(), success, "\"\\xff\"\n", "", "clients", at["sqlite"])
}

// TestSource: a copy never creates its source, and a damaged one copies nothing.
func TestSource(t *testing.T) {
	f := newFixture(t)
	f.run(t.Context(), failure, "", "no such file", "copy", "-migrate", f.at("missing"), f.at("export"))
	f.run(t.Context(), failure, "", "unable to open", "copy", "-migrate", f.inSQLite("missing"), f.at("export"))
	f.run(t.Context(), failure, "", "If TO doesn't exist yet, give -migrate", "copy", f.at("webhooks"), f.at("export"))
	var diagnostics bytes.Buffer
	if run(t.Context(), []string{"copy", f.at("missing"), f.at("export")}, strings.NewReader(""), io.Discard, &diagnostics); strings.Contains(diagnostics.String(), "TO") {
		t.Errorf("the source is missing: %s", &diagnostics)
	}
	f.damage()
	f.run(t.Context(), found, "", "line 4", "copy", "-migrate", f.at("webhooks"), f.at("export"))
	for _, name := range []string{"missing", "missing.db", "export"} {
		if _, err := os.Lstat(f.path(name)); err == nil {
			t.Errorf("%s was created", name)
		}
	}
}

// TestCancelled: a copy that ends early says what it did.
func TestCancelled(t *testing.T) {
	f := newFixture(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f.run(ctx, failure, "", "context canceled", "copy", "-migrate", f.at("webhooks"), f.at("export"))
}

// TestSQLiteFileIsPrivate: admin creates a database that only you can open, and check warns of
// others.
func TestSQLiteFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the directory's access list decides")
	}
	f := newFixture(t)
	at := f.stores()["sqlite"]
	mode := func() os.FileMode {
		info, err := os.Stat(f.path("webhooks.db"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().Perm()
	}
	if got := mode(); got != 0o600 {
		t.Errorf("created with the mode %04o", got)
	}
	f.run(t.Context(), success, "4 clients", "", "check", at)
	if err := os.Chmod(f.path("webhooks.db"), 0o640); err != nil {
		t.Fatal(err)
	}
	f.run(t.Context(), found, "(mode 0640), and webhook URLs are credentials: chmod 600", "", "check", at)
	f.run(t.Context(), success, "4 clients", "", "check", "-shared", at)
	f.runTyping(t.Context(), f.path("webhooks.db"), success, "0 changes", "", "copy", "-migrate", "-replace", f.at("webhooks"), at)
	if got := mode(); got != 0o640 {
		t.Errorf("the mode of an existing file was changed to %04o", got)
	}
}

// TestCheckLeavesTheFile: check warns about a database without WAL instead of turning it on, and says
// that it doesn't see the connections of the service. No other command that works with the store of
// a service turns it on either.
func TestCheckLeavesTheFile(t *testing.T) {
	f := newFixture(t)
	at := f.stores()["sqlite"]
	f.run(t.Context(), success, "have it log the warnings of Store.Check", "", "check", at)
	db, err := sql.Open("sqlite", f.path("webhooks.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "PRAGMA journal_mode = DELETE"); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"clients", at},
		{"health", at},
		{"audit", at},
		{"verify", f.at("webhooks"), at},
		{"unset", at, "a", "e1"},
		{"copy", "-migrate", at, f.at("export")},
	} {
		f.run(t.Context(), success, "", "", args...)
	}
	f.run(t.Context(), found, "set the pragma journal_mode to WAL", "", "check", at)
	f.run(t.Context(), found, `"warnings":["reads and changes`, "", "check", "-json", at)
}

// TestSQLiteSyncs: the changes of a copy don't each wait for the disk, but flush makes them
// durable, even while others have the database open. All other changes do wait.
func TestSQLiteSyncs(t *testing.T) {
	f := newFixture(t)
	path := f.path("webhooks.db")
	a := address{"sqlite", path, ""}
	for _, isBulk := range []bool{true, false} {
		st, err := a.open(t.Context(), openOptions{logger: slog.New(slog.DiscardHandler), migrate: true, bulk: isBulk})
		if err != nil {
			t.Fatal(err)
		}
		defer st.close()
		if err := st.Apply(t.Context(), setAll("acme")); err != nil {
			t.Fatal(err)
		}
		warnings, err := st.settings(t.Context())
		if waits := !strings.Contains(strings.Join(warnings, ""), "synchronous"); err != nil || waits == isBulk || (st.flush == nil) == isBulk {
			t.Errorf("bulk is %v: %q, %v", isBulk, warnings, err)
		}
		if !isBulk {
			continue
		}
		if err := st.flush(t.Context()); err != nil {
			t.Error(err)
		}
		if info, err := os.Stat(path + "-wal"); err != nil || info.Size() > 0 {
			t.Errorf("flush left changes in the log: %v, %v", info, err)
		}
	}
}

// TestFlushWaitsForReaders: while somebody reads an older state, SQLite can't complete the
// checkpoint.
func TestFlushWaitsForReaders(t *testing.T) {
	f := newFixture(t)
	at := f.stores()["sqlite"]
	db, err := sql.Open("sqlite", f.path("webhooks.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	reader, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var clients int
	if err := reader.QueryRowContext(t.Context(), "SELECT count(*) FROM wh_client").Scan(&clients); err != nil {
		t.Fatal(err)
	}
	f.apply(at, setAll("new"))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := checkpoint(ctx, db); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("during the read: %v", err)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := checkpoint(t.Context(), db); err != nil {
		t.Errorf("after the read: %v", err)
	}
}
