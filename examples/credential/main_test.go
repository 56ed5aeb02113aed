package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/go-webhookcfg/auth"
)

// fixture runs the command on a credential file and verifies as a service would.
type fixture struct {
	*testing.T
	path string
}

func newFixture(t *testing.T) fixture {
	return fixture{t, filepath.Join(t.TempDir(), "credentials")}
}

func (f fixture) run(args ...string) (stdout string, err error) {
	var out, diagnostics strings.Builder
	err = run(append([]string{"-file", f.path}, args...), &out, &diagnostics)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func (f fixture) must(args ...string) (stdout string) {
	f.Helper()
	stdout, err := f.run(args...)
	if err != nil {
		f.Fatalf("%v: %v", args, err)
	}
	return stdout
}

// mustFail also checks that the file is unchanged and that no other file is left.
func (f fixture) mustFail(args ...string) {
	f.Helper()
	before, _ := os.ReadFile(f.path)
	stdout, err := f.run(args...)
	after, _ := os.ReadFile(f.path)
	if err == nil || stdout != "" || string(before) != string(after) {
		f.Errorf("%v: got %q, %v", args, stdout, err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(f.path)); len(entries) > 1 {
		f.Errorf("%v: left %v", args, entries)
	}
}

// owner returns the ID of the client that signs in with the current file, "" if refused.
func (f fixture) owner(id, secret string) string {
	f.Helper()
	file, err := auth.OpenFile(f.path, nil)
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	client, _ := file.Verify(f.Context(), id, secret)
	return client.ID
}

func (f fixture) wantOwner(id, secret, want string) {
	f.Helper()
	if got := f.owner(id, secret); got != want {
		f.Errorf("%s signs in as %q, want %q", id, got, want)
	}
}

func TestRotateAndRetire(t *testing.T) {
	f := newFixture(t)
	first := f.must("add", "acme")
	f.wantOwner("acme", first, "acme")
	second := f.must("rotate", "acme")
	f.wantOwner("acme", first, "acme")
	f.wantOwner("acme", second, "acme")
	third := f.must("rotate", "acme")
	f.wantOwner("acme", first, "")
	f.wantOwner("acme", second, "acme")
	f.wantOwner("acme", third, "acme")
	f.must("-old", "retire", "acme")
	f.wantOwner("acme", second, "")
	f.wantOwner("acme", third, "acme")
	f.must("retire", "acme")
	f.wantOwner("acme", third, "")

	f.mustFail("add", "acme")
	f.mustFail("rotate", "acme")
	f.mustFail("retire", "acme")
	f.mustFail("-old", "retire", "acme")
}

// TestRetireOldFindsNone: whoever retires the older secrets of an id that has one secret learns that
// nothing has changed, since it could be the one that leaked.
func TestRetireOldFindsNone(t *testing.T) {
	f := newFixture(t)
	secret := f.must("add", "acme")
	f.mustFail("-old", "retire", "acme")
	if _, err := f.run("-old", "retire", "acme"); err == nil || !strings.Contains(err.Error(), "acme has only one secret") {
		t.Errorf("got %v", err)
	}
	f.wantOwner("acme", secret, "acme")
}

// TestNewestHasNotEnded: the secret that is kept is one that the client can sign in with, wherever a
// line stands whose time has come. An id whose secrets have all ended gets a new one, or is disabled.
func TestNewestHasNotEnded(t *testing.T) {
	f := newFixture(t)
	ends := map[string]string{"old": "", "valid": " until=2999-01-31T12:00:00Z", "past": " until=2020-01-31T12:00:00Z"}
	for _, row := range []struct{ before, args, after string }{
		{"old valid past", "-old retire acme", "valid"},
		{"past old valid", "-old retire acme", "valid"},
		{"valid old past", "-old retire acme", "old"},
		{"past", "-old retire acme", "past"},
		{"old valid past", "-name new rotate acme", "valid new"},
		{"past", "-name new rotate acme", "new"},
		{"old past", "retire acme", ""},
	} {
		text := []byte("begin\n")
		for n, name := range strings.Fields(row.before) {
			text = fmt.Appendf(text, "acme:sha256:%064d owner=customer-12 name=%s%s\n", n+1, name, ends[name])
		}
		if err := os.WriteFile(f.path, append(text, "end\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := f.run(strings.Fields(row.args)...)
		if refused := row.before == row.after; refused != (err != nil) || refused && !strings.Contains(err.Error(), "all secrets of acme have ended") {
			t.Errorf("%s: %s: %v", row.before, row.args, err)
		}
		var names []string
		for line := range strings.Lines(f.must("list")) {
			if !strings.Contains(line, " owner=customer-12") {
				t.Errorf("%s: %s: %s", row.before, row.args, line)
			}
			if _, name, ok := strings.Cut(line, " name="); ok {
				names = append(names, strings.Fields(name)[0])
			}
		}
		if got := strings.Join(names, " "); got != row.after {
			t.Errorf("%s: %s: the file has %q, want %q", row.before, row.args, got, row.after)
		}
	}
}

// TestEmptyName: a name that a script left empty is refused.
func TestEmptyName(t *testing.T) {
	f := newFixture(t)
	for _, command := range []string{"add", "rotate"} {
		if _, err := f.run("-name", "", command, "acme"); err == nil || !strings.Contains(err.Error(), "perhaps because a variable isn't set") {
			t.Errorf("%s: %v", command, err)
		}
	}
}

// TestRetireNamesOtherIDs: whoever shuts a client out learns which of its ids are left.
func TestRetireNamesOtherIDs(t *testing.T) {
	f := newFixture(t)
	hash := ":sha256:" + strings.Repeat("ab", 32)
	const text = "begin\nacme%[1]s\nacme:sha256:%064[2]d name=new\nacme-2%[1]s owner=acme\nacme-3%[1]s disabled owner=acme\nacme-4:disabled owner=acme\nacme-5%[1]s owner=acme until=2020-01-31T12:00:00Z\nother%[1]s owner=o\n\nend\n"
	if err := os.WriteFile(f.path, fmt.Appendf(nil, text, hash, 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := f.must("-old", "retire", "acme"); got != "" {
		t.Errorf("with -old: %s", got)
	}
	if got, want := f.must("retire", "acme"), "acme-2 still signs in as client acme: to shut the client out, retire acme-2 too"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := f.must("retire", "acme-2"); got != "" {
		t.Errorf("the last id: %s", got)
	}
}

// TestMissingFile: only add makes one, and the error says so.
func TestMissingFile(t *testing.T) {
	f := newFixture(t)
	for _, args := range [][]string{{"list"}, {"rotate", "acme"}, {"retire", "acme"}, {"-old", "retire", "acme"}} {
		_, err := f.run(args...)
		if err == nil || !strings.Contains(err.Error(), "there is no file "+f.path) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestKeepsOtherLines: a file that somebody wrote by hand keeps its comments, and each client
// its fields.
func TestKeepsOtherLines(t *testing.T) {
	f := newFixture(t)
	hash := ":sha256:" + strings.Repeat("ab", 32)
	const before = "# ask Operations\n\nbegin\nother%[1]s \tname=o\nold%[1]s owner=customer-12\n# gone\nreserved:disabled owner=customer-14\n"
	if err := os.WriteFile(f.path, fmt.Appendf(nil, strings.ReplaceAll(before, "\n", "\r\n")+"end\r\n", hash), 0o600); err != nil {
		t.Fatal(err)
	}
	f.must("add", "acme")
	f.must("retire", "acme")
	secret := f.must("-name", "2027", "rotate", "old")
	f.wantOwner("old", secret, "customer-12")
	f.mustFail("rotate", "reserved")
	want := "other:sha256 name=o\nold:sha256 owner=customer-12\nreserved:disabled owner=customer-14\nacme:disabled\nold:sha256 name=2027 owner=customer-12"
	if got := f.must("list"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	f.must("-old", "retire", "old")
	f.must("retire", "old")
	text, err := os.ReadFile(f.path)
	if want := fmt.Sprintf(strings.ReplaceAll(before, "old%[1]s owner=customer-12\n", "")+"acme:disabled\nold:disabled owner=customer-12\nend\n", hash); err != nil || string(text) != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, text, want)
	}
}

func TestRefuses(t *testing.T) {
	f := newFixture(t)
	f.mustFail("add", "a:b")
	f.mustFail("add", "#a")
	f.mustFail("add", "")
	for _, name := range []string{"a b", "x\towner=other", "x\nother:disabled"} {
		f.mustFail("-name", name, "add", "acme")
	}
	f.must("add", "acme")
	f.mustFail("add", "acme")
	f.mustFail("retire", "unknown")
	f.mustFail("rotate", "unknown")
	for _, args := range [][]string{{"-old", "rotate", "acme"}, {"-name", "2027", "retire", "acme"}, {"-old", "add", "new"}, {"-old", "list"}} {
		f.mustFail(args...) // whoever gave the flag expects an effect
	}
	for _, args := range [][]string{nil, {"add"}, {"list", "acme"}, {"add", "a", "b"}, {"drop", "acme"}} {
		if _, err := f.run(args...); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%v: got %v", args, err)
		}
	}
	if err := os.WriteFile(f.path, []byte("malformed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.mustFail("add", "acme-2")
	f.mustFail("list")
}

// TestRefusesMode: a service that refuses the file would go on with a retired secret, so the
// command fails with the service's reason.
func TestRefusesMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	f := newFixture(t)
	f.must("add", "acme")
	if err := os.Chmod(f.path, 0o640); err != nil {
		t.Fatal(err)
	}
	f.mustFail("retire", "acme")
	if _, err := f.run("retire", "acme"); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("got %v", err)
	}
}

func TestConcurrentEdit(t *testing.T) {
	f := newFixture(t)
	f.must("add", "acme")
	held := f.path + ".new"
	if err := os.WriteFile(held, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.run("rotate", "acme"); err == nil || !strings.Contains(err.Error(), held) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(held); err != nil {
		t.Errorf("the file of the other process is gone: %v", err)
	}
}

func TestFollowsSymlink(t *testing.T) {
	f := newFixture(t)
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(target, f.path); err != nil {
		t.Skip("symbolic links are not supported: ", err)
	}
	if err := os.WriteFile(target, []byte("begin\nreserved:disabled\nend\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := f.must("add", "acme")
	f.wantOwner("acme", secret, "acme")
	if info, err := os.Lstat(f.path); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link was replaced: %v", err)
	}
	if info, err := os.Stat(target); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
}
