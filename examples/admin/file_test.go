package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	running "example.com/go-webhookcfg/examples/internal/backup"
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

// secret is in the path of every URL, and is the password of every address.
const secret = "s3cr3t"

func newFixture(t *testing.T) fixture {
	dir, err := os.MkdirTemp("", "admin") // short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	f := fixture{t, dir}
	file, err := store.OpenFile(f.path("webhooks"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range clients {
		if err := file.Apply(t.Context(), setAll(client)); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f fixture) path(name string) string { return filepath.Join(f.dir, name) }

// at returns the address of a file store.
func (f fixture) at(name string) string { return "file:" + f.path(name) }

// run runs the command and compares its exit code; the output must contain parts of both
// streams, and never the secret.
func (f fixture) run(ctx context.Context, code int, stdout, stderr string, args ...string) {
	f.Helper()
	f.runTyping(ctx, "", code, stdout, stderr, args...)
}

// runTyping is run with a standard input.
func (f fixture) runTyping(ctx context.Context, stdin string, code int, stdout, stderr string, args ...string) {
	f.Helper()
	var out, diagnostics bytes.Buffer
	if got := run(ctx, args, strings.NewReader(stdin), &out, &diagnostics); got != code || !strings.Contains(untimed(out.String()), stdout) || !strings.Contains(diagnostics.String(), stderr) {
		f.Errorf("%v: exit code %d, want %d\nstdout: %sstderr: %s", args, got, code, &out, &diagnostics)
	}
	if strings.Contains(out.String()+diagnostics.String(), secret) {
		f.Errorf("%v shows a secret: %s%s", args, &out, &diagnostics)
	}
}

var (
	anHour = regexp.MustCompile(`\b1h\d+m\d+s`)
	took   = regexp.MustCompile(` in [\d.]+m?s;`)
)

// untimed is a text as a fast machine prints it.
func untimed(text string) string {
	return took.ReplaceAllString(anHour.ReplaceAllString(text, "1h0m0s"), " in 0s;")
}

// output runs a command that succeeds, and returns its output.
func (f fixture) output(args ...string) string {
	f.Helper()
	var out, diagnostics bytes.Buffer
	if code := run(f.Context(), args, strings.NewReader(""), &out, &diagnostics); code != success {
		f.Fatalf("%v: exit code %d: %s", args, code, &diagnostics)
	}
	return out.String()
}

// apply makes changes of a store.
func (f fixture) apply(at string, changes ...webhookcfg.Change) {
	f.Helper()
	a, err := parseAddress(at, "")
	if err != nil {
		f.Fatal(err)
	}
	st, err := a.open(f.Context(), openOptions{logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	defer st.close()
	for _, change := range changes {
		if err := st.Apply(f.Context(), change); err != nil {
			f.Fatal(err)
		}
	}
}

// setAll returns the change that gives a client a webhook with a secret.
func setAll(client string) webhookcfg.Change {
	return webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL("https://example.com/"+secret+client))
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
		if hook.URL.Equal(egress.NewURL("https://example.com/" + secret + client)) {
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
		err = os.WriteFile(f.path("webhooks"), bytes.Replace(content, []byte(secret+"b"), []byte(secret+"x"), 1), 0o600)
	}
	if err != nil {
		f.Fatal(err)
	}
}

func TestBackup(t *testing.T) {
	f := newFixture(t)
	f.run(t.Context(), success, "is a copy of", "", "backup", f.at("webhooks"), f.at("copy"))
	if got := f.clients("copy"); got != "abcd" {
		t.Errorf("the copy has the clients %q", got)
	}
	f.run(t.Context(), success, "is intact: 4 changes", "", "check", f.at("copy"))
	f.run(t.Context(), failure, "", "exists", "backup", f.at("webhooks"), f.at("copy"))
	f.run(t.Context(), failure, "", "no such file", "backup", f.at("missing"), f.at("other"))
	f.damage()
	f.run(t.Context(), found, "", "line 4", "backup", f.at("webhooks"), f.at("other"))
	for _, name := range []string{"missing", "missing.lock", "other", "other.tmp"} {
		if _, err := os.Lstat(f.path(name)); err == nil {
			t.Errorf("%s was created", name)
		}
	}
}

// TestEmptyFile: an empty file, such as a backup for which there was no room, isn't a store without webhooks, and
// stays as it is.
func TestEmptyFile(t *testing.T) {
	f := newFixture(t)
	if err := os.WriteFile(f.path("empty"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"health", f.at("empty")},
		{"clients", f.at("empty")},
		{"backup", f.at("empty"), f.at("other")},
		{"verify", f.at("empty"), f.at("webhooks")},
		{"copy", "-replace", f.at("empty"), f.at("webhooks")},
	} {
		f.run(t.Context(), failure, "", "restore a backup", args...)
	}
	if info, err := os.Stat(f.path("empty")); err != nil || info.Size() > 0 {
		t.Errorf("%v, %v", info, err)
	}
	f.run(t.Context(), success, "a\n", "", "clients", f.at("webhooks"))
}

func TestCheckAndSalvage(t *testing.T) {
	f := newFixture(t)
	f.run(t.Context(), success, "is intact: 4 changes", "", "check", f.at("webhooks"))
	f.run(t.Context(), success, "4 intact changes", "", "salvage", f.at("webhooks"), f.at("whole"))
	f.damage()
	f.run(t.Context(), found, "", "copy the intact changes to a new file with admin salvage", "check", f.at("webhooks"))
	f.run(t.Context(), found, "\tline 4, byte", "", "salvage", f.at("webhooks"), f.at("fresh"))
	if got := f.clients("fresh") + " " + f.clients("whole"); got != "acd abcd" {
		t.Errorf("salvaged are the clients %q", got)
	}
	f.run(t.Context(), failure, "", "exists", "salvage", f.at("webhooks"), f.at("fresh"))
	if err := os.WriteFile(f.path("text"), []byte("to whom it may concern\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.run(t.Context(), found, "", "neither a header", "salvage", f.at("text"), f.at("other"))
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	f.run(cancelled, failure, "", "canceled", "salvage", f.at("webhooks"), f.at("other"))
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
	f.run(t.Context(), success, "the last 9 bytes", "", "check", f.at("webhooks"))
	f.run(t.Context(), success, "is a copy of", "torn tail", "backup", f.at("webhooks"), f.at("copy"))
}

// TestBackupOfARunningService: the service that has the store open writes the backup, even
// after somebody removed the store's file.
func TestBackupOfARunningService(t *testing.T) {
	f := newFixture(t)
	file, err := store.OpenFile(f.path("webhooks"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	service, err := running.Listen(f.path("webhooks")+running.Suffix, file.Backup, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	f.run(t.Context(), success, "written by the service", "", "backup", f.at("webhooks"), f.at("copy"))
	f.run(t.Context(), failure, "", "exists", "backup", f.at("webhooks"), f.at("copy"))
	if runtime.GOOS != "windows" { // where nobody can remove an open file
		if err := os.Remove(f.path("webhooks")); err != nil {
			t.Fatal(err)
		}
	}
	f.run(t.Context(), success, `"copy":"`, "", "backup", "-json", f.at("webhooks"), f.at("rescue"))
	for _, name := range []string{"copy", "rescue"} {
		if got := f.clients(name); got != "abcd" {
			t.Errorf("%s has the clients %q", name, got)
		}
	}
	if err := service.Close(); err != nil {
		t.Error(err)
	}
	f.run(t.Context(), failure, "", "", "backup", f.at("webhooks"), f.at("late"))
}

// TestBackupElsewhere: a service that sees other files, for example in a container, writes a backup
// that isn't there for whoever asked.
func TestBackupElsewhere(t *testing.T) {
	f := newFixture(t)
	elsewhere := func(context.Context, string) error { return nil }
	service, err := running.Listen(f.path("webhooks")+running.Suffix, elsewhere, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer service.Close()
	f.run(t.Context(), failure, "", "to that path as it sees it", "backup", f.at("webhooks"), f.at("copy"))
	if err := os.WriteFile(f.path("copy"), []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.run(t.Context(), failure, "", "file already exists", "backup", f.at("webhooks"), f.at("copy"))
}

func TestOpenStoreIsRefused(t *testing.T) {
	f := newFixture(t)
	file, err := store.OpenFile(f.path("webhooks"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	const stop, orCopy = "stop the service first\n", "stop the service first, or work with a copy by admin backup"
	for _, c := range []struct {
		want string
		args []string
	}{
		{orCopy, []string{"clients", f.at("webhooks")}},
		{orCopy, []string{"show", f.at("webhooks"), "a", "e1"}},
		{orCopy, []string{"audit", f.at("webhooks")}},
		{orCopy, []string{"check", f.at("webhooks")}},
		{orCopy, []string{"verify", f.at("webhooks"), f.at("copy")}},
		{stop, []string{"set", f.at("webhooks"), "a", "e1"}},
		{stop, []string{"unset", f.at("webhooks"), "a", "e1"}},
		{stop, []string{"erase", f.at("webhooks"), "a"}},
		{stop, []string{"copy", "-migrate", f.at("webhooks"), f.at("copy")}},
		{stop, []string{"backup", f.at("webhooks"), f.at("copy")}},
		{stop, []string{"salvage", f.at("webhooks"), f.at("copy")}},
	} {
		f.run(t.Context(), failure, "", c.want, c.args...)
		if c.args[0] == "backup" {
			f.run(t.Context(), failure, "", "no program listens", c.args...)
		}
	}
	f.run(t.Context(), failure, "", "ask its path /healthz", "health", f.at("webhooks"))
}

func TestUsage(t *testing.T) {
	f := newFixture(t)
	for _, args := range [][]string{
		{},
		{"-h"},
		{"-unknown"},
		{"check"},
		{"check", "a", "b"},
		{"backup", "a"},
		{"salvage", "a", "b", "c"},
		{"repair", "a", "b"},
		{"check", "-h"},
		{"check", "-unknown", "file:a"},
		{"list", "file:a"},
	} {
		f.run(t.Context(), wrongUsage, "", "usage: admin", args...)
	}
}

// TestEmptyArgument: an empty argument never means that there is none, so it audits or changes
// nothing.
func TestEmptyArgument(t *testing.T) {
	f := newFixture(t)
	for _, c := range commands {
		for n := range strings.Fields(c.arguments) {
			args := []string{c.name}
			for i := range n + 1 {
				args = append(args, map[bool]string{false: f.at("webhooks")}[i == n])
			}
			for !c.takes(len(args) - 1) {
				args = append(args, "x")
			}
			f.run(t.Context(), wrongUsage, "", fmt.Sprintf("%s: argument %d is empty", c.name, n+1), args...)
		}
	}
}

// TestEmptyFlag: an empty value is never the same as no flag.
func TestEmptyFlag(t *testing.T) {
	f := newFixture(t)
	for name, args := range map[string][]string{
		"prefix":      {"clients"},
		"sealed-keys": {"check"},
		"to-prefix":   {"verify"},
		"queue":       {"queue"},
		"actor":       {"unset"},
		"ports":       {"audit"},
	} {
		f.run(t.Context(), wrongUsage, "", "-"+name+": ", append(args, "-"+name, "", f.at("webhooks"), "a", "e1")...)
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
	f.run(t.Context(), failure, "", f.dir, "check", f.at("webhooks"))
	f.run(t.Context(), success, "is intact", "", "check", "-shared", f.at("webhooks"))
}
