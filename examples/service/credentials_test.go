package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestSecretsInFiles: secrets are read from the files that the environment names. It's an
// error if one of these is missing.
func TestSecretsInFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("one two\n"), 0o440); err != nil {
		t.Fatal(err)
	}
	parsed := func(all map[string]string) (config, error) {
		return parse(nil, variables(all), t.Output())
	}
	cfg, err := parsed(map[string]string{"MASTER_FILE": file, "STORE_FILE": file})
	if err != nil || len(cfg.masters) != 2 || cfg.store != "one two" {
		t.Errorf("got %+v, %v", cfg, err)
	}
	if _, err := parsed(map[string]string{"MASTER_FILE": file + "x"}); err == nil || !strings.Contains(err.Error(), "MASTER_FILE") {
		t.Errorf("a file that is missing: %v", err)
	}
}

// TestSeparatedMasters: what isn't a blank doesn't separate masters, and isn't taken for a part of one.
func TestSeparatedMasters(t *testing.T) {
	for _, text := range []string{master + "," + master, master + ", " + master, master + ";" + master, `"` + master + " " + master + `"`, "'" + master + "'"} {
		if _, err := parse(nil, variables(map[string]string{"MASTER": text}), t.Output()); err == nil || !strings.Contains(err.Error(), "separated by blanks") || strings.Contains(err.Error(), master) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if cfg, err := parse(nil, variables(map[string]string{"MASTER": " " + master + "\t" + master + "\n"}), t.Output()); err != nil || len(cfg.masters) != 2 {
		t.Errorf("got %+v, %v", cfg, err)
	}
}

// TestInvisible: characters that nobody sees would make another master, or another store, so they
// are refused by name.
func TestInvisible(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	for content, want := range map[string]string{
		"\ufeff" + master:                  "U+FEFF",
		"\xff\xfea\x00b\x00":               "UTF-16",
		master + "\u200b":                  "U+200B",
		master + "\u00a0" + master:         "U+00A0",
		master + "\r" + master:             "U+000D",
		"sqlite:a.db\n\nsqlite:b.db\u200b": "line 3",
	} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for variable, value := range map[string]string{"MASTER_FILE": file, "STORE_FILE": file, "MASTER": content, "STORE": content} {
			_, err := parse(nil, variables(map[string]string{variable: value}), t.Output())
			if err == nil || !strings.Contains(err.Error(), variable+": ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), master) {
				t.Errorf("%s with %q: %v, want %s", variable, content, err, want)
			}
		}
	}
}

// TestEmptyFile: a file without a value doesn't mean the default.
func TestEmptyFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	for content, want := range map[string]string{"": "is empty", " \r\n": "is empty", "sqlite:a.db\nsqlite:b.db": "want one line"} {
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := parse(nil, variables(map[string]string{"STORE_FILE": file}), t.Output())
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
	}
}

// TestEmptyVariable: a variable that's set but empty, perhaps because another one wasn't set, doesn't
// mean the default: the clients' webhooks would go to a new database in the working directory.
func TestEmptyVariable(t *testing.T) {
	for _, name := range []string{"STORE", "STORE_FILE", "MASTER", "MASTER_FILE"} {
		for _, value := range []string{"", " \n"} {
			_, err := parse([]string{"-dev"}, variables(map[string]string{name: value}), t.Output())
			if err == nil || !strings.Contains(err.Error(), "environment variable "+name+": it's empty") {
				t.Errorf("%s=%q: %v", name, value, err)
			}
		}
	}
}

// TestLineEnds: an editor's line ends don't change a master.
func TestLineEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "master")
	if err := os.WriteFile(file, []byte(master+"1\r\n"+master+"2\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := parse(nil, variables(map[string]string{"MASTER_FILE": file}), t.Output())
	if err != nil || len(cfg.masters) != 2 || string(cfg.masters[0]) != master+"1" || string(cfg.masters[1]) != master+"2" {
		t.Errorf("got %q, %v", cfg.masters, err)
	}
}

// command runs a command of the program, and returns what it prints.
func command(t *testing.T, store string, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := run(t.Context(), append([]string{"-store", store}, args...), withMaster, &out, t.Output())
	return out.String(), err
}

// mustPrint expects a command to succeed.
func mustPrint(t *testing.T, store string, args ...string) string {
	t.Helper()
	text, err := command(t, store, args...)
	if err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return text
}

// TestRotation: a client changes from one secret to another. The operator sees when nothing uses
// the old one any more, and retires it. Within seconds, two running processes refuse it, although
// both remember it.
func TestRotation(t *testing.T) {
	store := newStore(t)
	one, metrics := start(t, "-store", store)
	two, _ := start(t, "-store", store)
	read := func(process, client string) string {
		t.Helper()
		status, _, _ := strings.Cut(callAs(t, client, http.MethodGet, process+webhooks, ""), " ")
		return status
	}
	added := strings.TrimSpace(mustPrint(t, store, "add", "acme", "second"))
	if got := mustPrint(t, store, "secrets", "acme"); got != "acme first never used\nacme second never used\n" {
		t.Errorf("before a sign-in: %s", got)
	}
	for _, process := range []string{one, two} {
		if got := read(process, client) + read(process, added); got != "200200" {
			t.Errorf("both secrets: %s", got)
		}
	}
	expect(t, call(t, http.MethodGet, one+"/healthz", ""), `200 {"credentials":"ok","modules":"ok","queue":"ok","store":"ok"}`)
	if got := figure(t, metrics, `webhook_healthy{part="credentials"}`); got != "1" {
		t.Errorf("the metric of their health is %q", got)
	}
	if got := mustPrint(t, store, "secrets"); strings.Count(got, " last used "+time.Now().UTC().Format("2006-")) != 2 || !strings.Contains(got, "other first never used") {
		t.Errorf("after the sign-ins: %s", got)
	}
	mustPrint(t, store, "retire", "acme", "first")
	for _, process := range []string{one, two} {
		await(t, func() (bool, string) {
			got := read(process, client)
			return got == "401", "the retired secret gets " + got
		})
		if got := read(process, added) + read(process, other); got != "200200" {
			t.Errorf("the other secrets: %s", got)
		}
	}
	mustPrint(t, store, "retire", "acme")
	if got := mustPrint(t, store, "secrets"); strings.Contains(got, "acme") {
		t.Errorf("all of them retired: %s", got)
	}
}

// TestSecretRefusals: a command that does nothing says why.
func TestSecretRefusals(t *testing.T) {
	store := newStore(t)
	mustPrint(t, store, "add", "acme")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"add"}, "want 1 to 128"},
		{[]string{"add", "a:b"}, "want 1 to 128"},
		{[]string{"add", "a", "b c"}, "want 1 to 128"},
		{[]string{"add", "acme", "third"}, "two secrets already: retire one"},
		{[]string{"add", "other", "first"}, "client other has, or had, a secret first: choose another name"},
		{[]string{"retire", "other", "second"}, "no secret"},
		{[]string{"retire"}, "no secret"},
		{[]string{"retire", "acme", "retired"}, "no secret"},
	} {
		if text, err := command(t, store, tt.args...); err == nil || !strings.Contains(err.Error(), tt.want) || text != "" {
			t.Errorf("%q: %s %v, want %s", tt.args, text, err, tt.want)
		}
	}
}

// TestUsesAreRecorded: a secret that's in use is recorded at most once an hour. A client can sign
// in even if that fails.
func TestUsesAreRecorded(t *testing.T) {
	s := idle(t, []string{"-store", newStore(t)})
	if _, err := s.verifier(); err != nil {
		t.Fatal(err)
	}
	id, secret, _ := strings.Cut(client, ":")
	used := func() (at int64) {
		t.Helper()
		if _, err := (recorder{s.credentials, s.database, s.logger}).Verify(t.Context(), id, secret); err != nil {
			t.Error(err)
		}
		if err := s.database.QueryRowContext(t.Context(), `SELECT used FROM secrets WHERE client = 'acme'`).Scan(&at); err != nil {
			t.Fatal(err)
		}
		return at
	}
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := s.database.ExecContext(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	for ago, isWritten := range map[time.Duration]bool{59 * time.Minute: false, 61 * time.Minute: true} {
		before := time.Now().Add(-ago).Unix()
		exec(`UPDATE secrets SET used = $1`, before)
		if got := used(); (got != before) != isWritten {
			t.Errorf("used %v ago: recorded %d, had %d", ago, got, before)
		}
	}
	exec(`UPDATE secrets SET used = 1`)
	exec(`PRAGMA query_only = 1`)
	if got := used(); got != 1 {
		t.Errorf("read-only: recorded %d", got)
	}
	if _, err := (recorder{s.credentials, s.database, s.logger}).Verify(t.Context(), id, "wrong"); err == nil {
		t.Error("a wrong secret signs in")
	}
}
