package main

import (
	"errors"
	"flag"
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

func (f fixture) run(stdin string, args ...string) (stdout string, err error) {
	var out, diagnostics strings.Builder
	err = run(append([]string{"-file", f.path}, args...), strings.NewReader(stdin), &out, &diagnostics)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func (f fixture) must(args ...string) (stdout string) {
	f.Helper()
	stdout, err := f.run("", args...)
	if err != nil {
		f.Fatalf("%v: %v", args, err)
	}
	return stdout
}

// mustFail also checks that the file is unchanged and that no other file is left.
func (f fixture) mustFail(args ...string) {
	f.Helper()
	before, _ := os.ReadFile(f.path)
	stdout, err := f.run("", args...)
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

func TestOwner(t *testing.T) {
	f := newFixture(t)
	first := f.must("add", "acme")
	second := f.must("-owner", "acme", "add", "acme-2")
	f.wantOwner("acme", first, "acme")
	f.wantOwner("acme-2", second, "acme")
	third := f.must("rotate", "acme-2")
	f.must("retire", "acme")
	f.wantOwner("acme", first, "")
	f.wantOwner("acme-2", second, "acme")
	f.wantOwner("acme-2", third, "acme")
}

func TestHuman(t *testing.T) {
	f := newFixture(t)
	if stdout, err := f.run("correct horse\n", "-human", "add", "human"); err != nil || stdout != "" {
		t.Fatalf("got %q, %v", stdout, err)
	}
	f.wantOwner("human", "correct horse", "human")
	if _, err := f.run("", "-human", "rotate", "human"); err == nil {
		t.Error("accepted an empty secret")
	}
}

func TestList(t *testing.T) {
	f := newFixture(t)
	secret := f.must("add", "acme")
	f.must("rotate", "acme")
	f.must("-owner", "acme", "add", "acme-2")
	f.must("add", "gone")
	f.must("retire", "gone")
	want := "acme\towner acme\tactive\tsecrets 2\nacme-2\towner acme\tactive\tsecrets 1\ngone\towner gone\tdisabled\tsecrets 0"
	if got := f.must("list"); got != want || strings.Contains(got, secret) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestKeepsOtherLines(t *testing.T) {
	f := newFixture(t)
	line, err := auth.SHA256Line("other", "s")
	if err != nil {
		t.Fatal(err)
	}
	const comment = "# acme: ask Operations\n\n"
	if err := os.WriteFile(f.path, []byte(comment+line), 0o600); err != nil {
		t.Fatal(err)
	}
	f.must("add", "acme")
	f.must("rotate", "acme")
	f.must("retire", "acme")
	f.wantOwner("other", "s", "other")
	if text, err := os.ReadFile(f.path); err != nil || !strings.HasPrefix(string(text), comment+line+"\n") {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestRefuses(t *testing.T) {
	f := newFixture(t)
	f.mustFail("rotate", "acme")
	f.mustFail("retire", "acme")
	f.mustFail("list")
	f.mustFail("add", "a:b")
	f.mustFail("add", "#a")
	f.mustFail("add", "")
	f.mustFail("-owner", "a b", "add", "acme")
	f.must("add", "acme")
	f.mustFail("add", "acme")
	f.mustFail("retire", "unknown")
	f.mustFail("rotate", "unknown")
	for _, args := range [][]string{nil, {"add"}, {"list", "acme"}, {"add", "a", "b"}, {"drop", "acme"}} {
		if _, err := f.run("", args...); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%v: got %v", args, err)
		}
	}

	if err := os.WriteFile(f.path, []byte("malformed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.mustFail("add", "acme-2")
	f.mustFail("list")
	if err := os.WriteFile(f.path, []byte("acme:owner:unknown\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.mustFail("-old", "retire", "acme")
}

func TestConcurrentEdit(t *testing.T) {
	f := newFixture(t)
	f.must("add", "acme")
	held := f.path + ".new"
	if err := os.WriteFile(held, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := f.run("", "rotate", "acme"); err == nil || !strings.Contains(err.Error(), held) {
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
	if err := os.WriteFile(target, []byte("reserved:disabled\n"), 0o600); err != nil {
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
