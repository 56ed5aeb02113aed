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
	f.must("-name", "2027", "-until", "2028-01-31T12:00:00Z", "-owner", "acme", "add", "acme-3")
	want := "acme:sha256\nacme:sha256\nacme-2:sha256 owner=acme\ngone:disabled\nacme-3:sha256 name=2027 owner=acme until=2028-01-31T12:00:00Z"
	if got := f.must("list"); got != want || strings.Contains(got, secret) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestKeepsOtherLines(t *testing.T) {
	const (
		secret  = "0123456789abcdef"
		comment = "# acme: ask Operations\n\n"
	)
	line := func(id string) string {
		text, err := auth.SHA256Line(id, auth.NewSecret(secret))
		if err != nil {
			t.Fatal(err)
		}
		return text + "\n"
	}
	trim := func(line string) string { return strings.TrimSuffix(line, "\n") }
	lines := comment + line("other") +
		trim(line("tenant")) + " name=1 owner=customer-12 until=2999-01-01T00:00:00Z\n# gone\n" +
		trim(line("gone")) + " owner=customer-13 disabled\nreserved:disabled owner=customer-14\n"
	for name, tt := range map[string][2]string{ // a file, and the lines that are kept
		"plain": {"begin\n" + lines + "end\n", lines},
		"other layout": {
			comment + "begin\n" + trim(line("other")) + " \towner=other\t  name=o \r\nend\r\n",
			comment + trim(line("other")) + " name=o owner=other\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if err := os.WriteFile(f.path, []byte(tt[0]), 0o600); err != nil {
				t.Fatal(err)
			}
			f.must("add", "acme")
			f.must("rotate", "acme")
			f.must("retire", "acme")
			if text, err := os.ReadFile(f.path); err != nil || string(text) != "begin\n"+tt[1]+"acme:disabled\nend\n" {
				t.Errorf("got %s, %v", text, err)
			}
		})
	}
}

// TestNamesAndEnds: the options of a new secret reach the service.
func TestNamesAndEnds(t *testing.T) {
	f := newFixture(t)
	first := f.must("-name", "2026", "-owner", "customer-12", "-until", "2999-01-01T00:00:00Z", "add", "acme")
	second := f.must("-name", "2027", "rotate", "acme")
	file, err := auth.OpenFile(f.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for secret, name := range map[string]string{first: "2026", second: "2027"} {
		if client, err := file.Verify(t.Context(), "acme", secret); err != nil || client.ID != "customer-12" || client.SecretName != name {
			t.Errorf("got %+v, %v, want %s", client, err, name)
		}
	}
}

// TestRotateKeepsTheSecretInUse: of the older secrets, rotate keeps the newest that signs in.
func TestRotateKeepsTheSecretInUse(t *testing.T) {
	f := newFixture(t)
	inUse := f.must("add", "acme")
	ended := f.must("-until", "2999-01-01T00:00:00Z", "rotate", "acme")
	f.replace("2999", "1999")
	newest := f.must("rotate", "acme")
	f.wantOwner("acme", ended, "")
	f.wantOwner("acme", inUse, "acme")
	f.wantOwner("acme", newest, "acme")
	f.must("-old", "retire", "acme")
	f.wantOwner("acme", inUse, "")
	f.wantOwner("acme", newest, "acme")

	// If all have ended, it keeps the newest, so you can see what the client had.
	only := f.must("-name", "only", "-until", "2999-01-01T00:00:00Z", "add", "acme-2")
	f.replace("2999", "1999")
	second := f.must("rotate", "acme-2")
	f.wantOwner("acme-2", only, "")
	f.wantOwner("acme-2", second, "acme-2")
	if list := f.must("list"); !strings.Contains(list, "name=only") {
		t.Errorf("listed %s", list)
	}
}

// replace replaces text in the file, such as the year in which a secret ends.
func (f fixture) replace(old, replacement string) {
	f.Helper()
	text, err := os.ReadFile(f.path)
	if err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(f.path, []byte(strings.ReplaceAll(string(text), old, replacement)), 0o600); err != nil {
		f.Fatal(err)
	}
}

// TestMissingFile: only add makes one, and the error says so.
func TestMissingFile(t *testing.T) {
	f := newFixture(t)
	for _, args := range [][]string{{"list"}, {"rotate", "acme"}, {"retire", "acme"}, {"-old", "retire", "acme"}} {
		_, err := f.run("", args...)
		if err == nil || !strings.Contains(err.Error(), "there is no file "+f.path) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestKeepsMode: the new file has the old one's mode. The command also accepts another owner.
func TestKeepsMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	f := newFixture(t)
	f.must("add", "acme")
	if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a new file has %v, %v", info.Mode(), err)
	}
	for _, mode := range []os.FileMode{0o400, 0o640} {
		if err := os.Chmod(f.path, mode); err != nil {
			t.Fatal(err)
		}
		f.must("-shared", "rotate", "acme")
		if info, err := os.Stat(f.path); err != nil || info.Mode().Perm() != mode {
			t.Errorf("got %v, %v, want %v", info.Mode(), err, mode)
		}
	}
	if err := os.Chmod(f.path, 0o660); err != nil {
		t.Fatal(err)
	}
	f.mustFail("rotate", "acme")
}

// TestRefusesMode: a service that refuses the file would go on with a retired secret, so the
// command fails with the service's reason.
func TestRefusesMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no permission bits")
	}
	f := newFixture(t)
	f.must("add", "acme")
	for _, mode := range []os.FileMode{0o604, 0o640, 0o644, 0o666} {
		if err := os.Chmod(f.path, mode); err != nil {
			t.Fatal(err)
		}
		_, reason := auth.OpenFile(f.path, nil)
		for _, args := range [][]string{{"add", "acme-2"}, {"rotate", "acme"}, {"-old", "retire", "acme"}, {"retire", "acme"}} {
			f.mustFail(args...)
			_, err := f.run("", args...)
			for _, want := range []string{f.path, fmt.Sprintf("mode %04o", mode), "chmod 600"} {
				if !strings.Contains(fmt.Sprint(reason), want) || !strings.Contains(fmt.Sprint(err), want) {
					t.Errorf("%v with mode %v: got %v, the service's reason is %v", args, mode, err, reason)
				}
			}
		}
	}
	if err := os.Chmod(f.path, 0o644); err != nil {
		t.Fatal(err)
	}
	f.must("-shared", "rotate", "acme")
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
	f.mustFail("-name", "a b", "add", "acme")
	for _, fields := range []string{"x owner=other", "x\towner=other", "x disabled", "x until=1999-01-01T00:00:00Z", "x\nother:disabled", "x\n# comment"} {
		f.mustFail("-name", fields, "add", "acme")
		f.mustFail("-owner", fields, "add", "acme")
	}
	f.mustFail("-until", "tomorrow", "add", "acme")
	f.mustFail("-until", "1999-01-01T00:00:00Z", "add", "acme")
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
	if err := os.WriteFile(f.path, []byte("acme:owner:customer-12\nacme:sha256:"+strings.Repeat("ab", 32)+"\n"), 0o600); err != nil {
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
