package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// fixture is a private directory with a closed store of some clients, each with one
// webhook, in the file "webhooks".
type fixture struct {
	*testing.T
	dir string
}

var clients = []string{"a", "b", "c", "d"}

func newFixture(t *testing.T) fixture {
	f := fixture{t, filepath.Join(t.TempDir(), "private")}
	if err := os.Mkdir(f.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := store.OpenFile(f.path("webhooks"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range clients {
		if err := file.Apply(t.Context(), webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL("https://example.com/"+client))); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fixture) path(name string) string { return filepath.Join(f.dir, name) }

// run runs the command and compares its exit code; the output must contain parts of both
// streams, and never a URL.
func (f fixture) run(ctx context.Context, code int, stdout, stderr string, args ...string) {
	f.Helper()
	var out, diagnostics bytes.Buffer
	if got := run(ctx, args, &out, &diagnostics); got != code || !strings.Contains(out.String(), stdout) || !strings.Contains(diagnostics.String(), stderr) {
		f.Errorf("%v: exit code %d, want %d\nstdout: %sstderr: %s", args, got, code, &out, &diagnostics)
	}
	if strings.Contains(out.String()+diagnostics.String(), "example.com") {
		f.Errorf("%v shows a URL: %s%s", args, &out, &diagnostics)
	}
}

// clients returns the clients that have a webhook in a file.
func (f fixture) clients(name string) (found string) {
	f.Helper()
	file, err := store.OpenFile(f.path(name), nil)
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	for _, client := range clients {
		hook, err := file.Resolve(f.Context(), client, "e1")
		if err != nil {
			f.Fatal(err)
		}
		if hook.URL.Equal(egress.NewURL("https://example.com/" + client)) {
			found += client
		}
	}
	return found
}

// damage changes a byte of the webhook of client b.
func (f fixture) damage() {
	f.Helper()
	content, err := os.ReadFile(f.path("webhooks"))
	if err == nil {
		err = os.WriteFile(f.path("webhooks"), bytes.Replace(content, []byte("example.com/b"), []byte("example.com/x"), 1), 0o600)
	}
	if err != nil {
		f.Fatal(err)
	}
}

func TestBackup(t *testing.T) {
	f := newFixture(t)
	f.run(t.Context(), success, "is a copy of", "", "backup", f.path("webhooks"), f.path("copy"))
	if got := f.clients("copy"); got != "abcd" {
		t.Errorf("the copy has the clients %q", got)
	}
	f.run(t.Context(), success, "is intact: 4 changes", "", "check", f.path("copy"))
	f.run(t.Context(), failure, "", "exists", "backup", f.path("webhooks"), f.path("copy"))
	f.run(t.Context(), failure, "", "no such file", "backup", f.path("missing"), f.path("other"))
	f.damage()
	f.run(t.Context(), damage, "", "line 4", "backup", f.path("webhooks"), f.path("other"))
	for _, name := range []string{"missing", "missing.lock", "other", "other.tmp"} {
		if _, err := os.Lstat(f.path(name)); err == nil {
			t.Errorf("%s was created", name)
		}
	}
}

func TestCheckAndSalvage(t *testing.T) {
	f := newFixture(t)
	f.run(t.Context(), success, "is intact: 4 changes", "", "check", f.path("webhooks"))
	f.run(t.Context(), success, "4 intact changes", "", "salvage", f.path("webhooks"), f.path("whole"))
	f.damage()
	f.run(t.Context(), damage, "", "store.SalvageFile", "check", f.path("webhooks"))
	f.run(t.Context(), damage, "\tline 4, byte", "", "salvage", f.path("webhooks"), f.path("fresh"))
	if got := f.clients("fresh") + " " + f.clients("whole"); got != "acd abcd" {
		t.Errorf("salvaged are the clients %q", got)
	}
	f.run(t.Context(), failure, "", "exists", "salvage", f.path("webhooks"), f.path("fresh"))
	if err := os.WriteFile(f.path("text"), []byte("to whom it may concern\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.run(t.Context(), failure, "", "neither a header", "salvage", f.path("text"), f.path("other"))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	f.run(cancelled, failure, "", "canceled", "salvage", f.path("webhooks"), f.path("other"))
}

func TestTornTail(t *testing.T) {
	f := newFixture(t)
	content, err := os.ReadFile(f.path("webhooks"))
	if err == nil {
		err = os.WriteFile(f.path("webhooks"), append(content, `{"op":"se`...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.run(t.Context(), success, "the last 9 bytes", "", "check", f.path("webhooks"))
	f.run(t.Context(), success, "is a copy of", "torn tail", "backup", f.path("webhooks"), f.path("copy"))
}

func TestOpenStoreIsRefused(t *testing.T) {
	f := newFixture(t)
	file, err := store.OpenFile(f.path("webhooks"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, args := range [][]string{
		{"check", f.path("webhooks")},
		{"backup", f.path("webhooks"), f.path("copy")},
		{"salvage", f.path("webhooks"), f.path("copy")},
	} {
		f.run(t.Context(), failure, "", "have it call File.Backup", args...)
	}
}

func TestUsage(t *testing.T) {
	f := newFixture(t)
	for _, args := range [][]string{
		{}, {"-h"}, {"-unknown"}, {"check"}, {"check", "a", "b"}, {"backup", "a"}, {"salvage", "a", "b", "c"}, {"repair", "a", "b"},
	} {
		f.run(t.Context(), wrongUsage, "", "usage: admin", args...)
	}
}

func TestSharedDirectory(t *testing.T) {
	f := newFixture(t)
	if err := os.Chmod(f.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(f.dir); err != nil || info.Mode().Perm() != 0o777 {
		t.Skip("directories have no modes here")
	}
	f.run(t.Context(), failure, "", f.dir, "check", f.path("webhooks"))
	f.run(t.Context(), success, "is intact", "", "-shared", "check", f.path("webhooks"))
}
