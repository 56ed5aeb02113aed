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

// desk is a credential file and a service that uses it.
type desk struct {
	*testing.T
	path string
}

func newDesk(t *testing.T) desk {
	return desk{t, filepath.Join(t.TempDir(), "credentials")}
}

func (d desk) run(stdin string, args ...string) (stdout string, err error) {
	var out, diagnostics strings.Builder
	err = run(append([]string{"-file", d.path}, args...), strings.NewReader(stdin), &out, &diagnostics)
	return strings.TrimSuffix(out.String(), "\n"), err
}

func (d desk) must(args ...string) (stdout string) {
	d.Helper()
	stdout, err := d.run("", args...)
	if err != nil {
		d.Fatalf("%v: %v", args, err)
	}
	return stdout
}

// mustFail also sees to it that the file is as before and nothing is left over.
func (d desk) mustFail(args ...string) {
	d.Helper()
	before, _ := os.ReadFile(d.path)
	stdout, err := d.run("", args...)
	after, _ := os.ReadFile(d.path)
	if err == nil || stdout != "" || string(before) != string(after) {
		d.Errorf("%v: got %q, %v", args, stdout, err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(d.path)); len(entries) > 1 {
		d.Errorf("%v: left %v", args, entries)
	}
}

// owner is who signs in to a service that reads the file now, "" for a refusal.
func (d desk) owner(id, secret string) string {
	d.Helper()
	f, err := auth.OpenFile(d.path, nil)
	if err != nil {
		d.Fatal(err)
	}
	defer f.Close()
	client, _ := f.Verify(d.Context(), id, secret)
	return client.ID
}

func (d desk) wantOwner(id, secret, want string) {
	d.Helper()
	if got := d.owner(id, secret); got != want {
		d.Errorf("%s signs in as %q, want %q", id, got, want)
	}
}

func TestLifeOfAClient(t *testing.T) {
	d := newDesk(t)
	first := d.must("add", "acme")
	d.wantOwner("acme", first, "acme")
	second := d.must("rotate", "acme")
	d.wantOwner("acme", first, "acme")
	d.wantOwner("acme", second, "acme")
	third := d.must("rotate", "acme")
	d.wantOwner("acme", first, "")
	d.wantOwner("acme", second, "acme")
	d.wantOwner("acme", third, "acme")
	d.must("-old", "retire", "acme")
	d.wantOwner("acme", second, "")
	d.wantOwner("acme", third, "acme")
	d.must("retire", "acme")
	d.wantOwner("acme", third, "")

	d.mustFail("add", "acme")
	d.mustFail("rotate", "acme")
	d.mustFail("retire", "acme")
	d.mustFail("-old", "retire", "acme")
}

func TestOwner(t *testing.T) {
	d := newDesk(t)
	first := d.must("add", "acme")
	second := d.must("-owner", "acme", "add", "acme-2")
	d.wantOwner("acme", first, "acme")
	d.wantOwner("acme-2", second, "acme")
	third := d.must("rotate", "acme-2")
	d.must("retire", "acme")
	d.wantOwner("acme", first, "")
	d.wantOwner("acme-2", second, "acme")
	d.wantOwner("acme-2", third, "acme")
}

func TestHuman(t *testing.T) {
	d := newDesk(t)
	if stdout, err := d.run("correct horse\n", "-human", "add", "human"); err != nil || stdout != "" {
		t.Fatalf("got %q, %v", stdout, err)
	}
	d.wantOwner("human", "correct horse", "human")
	if _, err := d.run("", "-human", "rotate", "human"); err == nil {
		t.Error("took an empty secret")
	}
}

func TestList(t *testing.T) {
	d := newDesk(t)
	secret := d.must("add", "acme")
	d.must("rotate", "acme")
	d.must("-owner", "acme", "add", "acme-2")
	d.must("add", "gone")
	d.must("retire", "gone")
	want := "acme\towner acme\tactive\tsecrets 2\nacme-2\towner acme\tactive\tsecrets 1\ngone\towner gone\tdisabled\tsecrets 0"
	if got := d.must("list"); got != want || strings.Contains(got, secret) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestKeepsTheRest(t *testing.T) {
	d := newDesk(t)
	line, err := auth.SHA256Line("other", "s")
	if err != nil {
		t.Fatal(err)
	}
	const comment = "# acme: ask Operations\n\n"
	if err := os.WriteFile(d.path, []byte(comment+line), 0o600); err != nil {
		t.Fatal(err)
	}
	d.must("add", "acme")
	d.must("rotate", "acme")
	d.must("retire", "acme")
	d.wantOwner("other", "s", "other")
	if text, err := os.ReadFile(d.path); err != nil || !strings.HasPrefix(string(text), comment+line+"\n") {
		t.Errorf("got %s, %v", text, err)
	}
}

func TestRefuses(t *testing.T) {
	d := newDesk(t)
	d.mustFail("rotate", "acme")
	d.mustFail("retire", "acme")
	d.mustFail("list")
	d.mustFail("add", "a:b")
	d.mustFail("add", "#a")
	d.mustFail("add", "")
	d.mustFail("-owner", "a b", "add", "acme")
	d.must("add", "acme")
	d.mustFail("add", "acme")
	d.mustFail("retire", "nobody")
	d.mustFail("rotate", "nobody")
	for _, args := range [][]string{nil, {"add"}, {"list", "acme"}, {"add", "a", "b"}, {"drop", "acme"}} {
		if _, err := d.run("", args...); !errors.Is(err, flag.ErrHelp) {
			t.Errorf("%v: got %v", args, err)
		}
	}

	if err := os.WriteFile(d.path, []byte("malformed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.mustFail("add", "acme-2")
	d.mustFail("list")
	if err := os.WriteFile(d.path, []byte("acme:owner:nobody-has-a-secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.mustFail("-old", "retire", "acme")
}

func TestOneRunAtATime(t *testing.T) {
	d := newDesk(t)
	d.must("add", "acme")
	held := d.path + ".new"
	if err := os.WriteFile(held, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := d.run("", "rotate", "acme"); err == nil || !strings.Contains(err.Error(), held) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(held); err != nil {
		t.Errorf("the file of the other run is gone: %v", err)
	}
}

func TestWritesWhereALinkPoints(t *testing.T) {
	d := newDesk(t)
	target := filepath.Join(t.TempDir(), "target")
	if err := os.Symlink(target, d.path); err != nil {
		t.Skip("links cannot be made here: ", err)
	}
	if err := os.WriteFile(target, []byte("reserved:disabled\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := d.must("add", "acme")
	d.wantOwner("acme", secret, "acme")
	if info, err := os.Lstat(d.path); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link was replaced: %v", err)
	}
	if info, err := os.Stat(target); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info, err)
	}
}
