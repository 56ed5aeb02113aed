package main

import (
	"bytes"
	"database/sql"
	"encoding/base64"
	"os"
	"runtime"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store"
)

// keyLine is a line of a file of keys.
func keyLine(id string) string {
	return id + " " + base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(id[:1]), 32)) + "\n"
}

// keys writes a file of keys with these IDs.
func (f fixture) keys(ids ...string) (path string) {
	f.Helper()
	var lines []string
	for _, id := range ids {
		lines = append(lines, keyLine(id))
	}
	path = f.path(strings.Join(ids, "-") + ".keys")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		f.Fatal(err)
	}
	return path
}

// sealed returns addresses of stores that have the same content, encrypted with the key "old".
func (f fixture) sealed() map[string]string {
	f.Helper()
	all := map[string]string{"file": f.at("sealed"), "sqlite": f.inSQLite("sealed")}
	for _, at := range all {
		f.run(f.Context(), success, "4 clients with 4 webhooks, 4 changes", "", "copy", "-migrate", "-allow-plain", "-sealed-keys", f.keys("old"), f.at("webhooks"), at)
	}
	return all
}

// TestSealedWithKeys: with the keys, every command works as on a store without encryption, and
// what it sets is encrypted.
func TestSealedWithKeys(t *testing.T) {
	f := newFixture(t)
	for name, at := range f.sealed() {
		t.Run(name, func(t *testing.T) {
			f := fixture{t, f.dir}
			old := f.keys("old")
			f.run(t.Context(), success, "default: https://example.com since", "", "list", "-sealed-keys", old, at, "a")
			if out := f.output("show", "-urls", "-sealed-keys", old, at, "a", "e1"); !strings.Contains(out, "https://example.com/"+secret+"a") {
				t.Errorf("-urls shows %s", out)
			}
			f.run(t.Context(), success, "", "", "audit", "-sealed-keys", old, at)
			f.run(t.Context(), found, "a, default: https://example.com", "", "audit", "-ports", "8443", "-sealed-keys", old, at, "a")
			f.run(t.Context(), success, "different: 0", "", "verify", "-allow-plain", "-sealed-keys", old, f.at("webhooks"), at)
			f.runTyping(t.Context(), newURL, success, "", "", "set", "-no-probe", "-sealed-keys", f.keys("old", "new"), at, "a", "e1")
			f.run(t.Context(), success, "entity e1: override https://hooks.example.net since", "", "show", "-sealed-keys", old, at, "a", "e1")
			f.runTyping(t.Context(), newURL, success, "", "", "set", "-no-probe", "-allow-plain", "-sealed-keys", f.keys("new", "old"), at, "a", "e1")
			f.run(t.Context(), success, "entity e1: override encrypted since", "", "show", at, "a", "e1")
			f.run(t.Context(), success, "entity e1: override https://hooks.example.net since", "", "show", "-sealed-keys", f.keys("new"), at, "a", "e1")
			f.runTyping(t.Context(), newURL, success, "", "", "set", "-no-probe", "-sealed-keys", f.keys("new", "old"), at, "a", "e2")
			f.run(t.Context(), failure, "", "no such key", "show", "-sealed-keys", old, at, "a", "e1")
			f.run(t.Context(), failure, "", "no such key", "audit", "-sealed-keys", old, at)
		})
	}
	for _, name := range []string{"sealed", "sealed.db"} {
		for _, part := range []string{"example.com", "example.net", secret} {
			if strings.Contains(f.read(name), part) {
				t.Errorf("%s has %q", name, part)
			}
		}
	}
}

// TestSealedWithoutKeys: a command that would set a readable URL, or judge an encrypted one,
// refuses and says what to do. The others work, and copy and verify leave URLs as they are.
func TestSealedWithoutKeys(t *testing.T) {
	f := newFixture(t)
	for name, at := range f.sealed() {
		t.Run(name, func(t *testing.T) {
			f := fixture{t, f.dir}
			f.runTyping(t.Context(), newURL, failure, "", "give -sealed-keys", "set", "-no-probe", at, "a", "e1")
			f.runTyping(t.Context(), newURL, failure, "", "give -sealed-keys", "set", "-no-probe", at, "new", "e1")
			f.run(t.Context(), failure, "", "give -sealed-keys", "audit", at)
			f.run(t.Context(), failure, "", "give -sealed-keys", "audit", at, "a")
			place := strings.TrimPrefix(strings.TrimPrefix(at, "sqlite:"), "file:")
			f.runTyping(t.Context(), place, failure, "", "give -sealed-keys", "copy", "-replace", f.at("webhooks"), at)
			f.run(t.Context(), success, "default: encrypted since", "", "list", at, "a")
			f.run(t.Context(), success, "entity e1: default encrypted since", "", "show", "-urls", at, "a", "e1")
			f.run(t.Context(), success, `"source":"base","sealed":true,`, "", "list", "-json", "-urls", at, "a")
			f.run(t.Context(), success, "4 webhooks, 4 changes", "", "copy", "-migrate", at, f.at("moved-"+name))
			f.run(t.Context(), success, "different: 0", "", "verify", at, f.at("moved-"+name))
			f.run(t.Context(), success, "entity e1: default https://example.com since", "", "show", "-sealed-keys", f.keys("old"), f.at("moved-"+name), "a", "e1")
			f.run(t.Context(), success, "", "", "unset", at, "a", "e1")
			f.runTyping(t.Context(), "b\n", success, "erased b", "", "erase", at, "b")
			f.runTyping(t.Context(), f.path("moved-"+name), success, "4 webhooks, 2 changes", "", "copy", "-replace", at, f.at("moved-"+name))
		})
	}
}

// TestSetWithOtherKeys: set refuses keys with which it would store a URL that the service can't
// decrypt, and changes nothing.
func TestSetWithOtherKeys(t *testing.T) {
	f := newFixture(t)
	other := f.path("other.keys")
	if err := os.WriteFile(other, []byte("old "+strings.TrimPrefix(keyLine("new"), "new ")), 0o600); err != nil {
		t.Fatal(err)
	}
	at := f.sealed()["file"]
	for _, c := range []struct{ at, keys, want string }{
		{at, other, `key "old" opens none of the URLs that have its ID`},
		{at, f.keys("new", "old"), `no URL is encrypted with key "new"`},
		{f.at("webhooks"), f.keys("old"), "none of the store's URLs is encrypted"},
	} {
		place := strings.TrimPrefix(c.at, "file:")
		before, err := os.ReadFile(place)
		if err != nil {
			t.Fatal(err)
		}
		for _, client := range []string{"a", "fresh"} {
			f.runTyping(t.Context(), newURL, failure, "", c.want, "set", "-no-probe", "-sealed-keys", c.keys, c.at, client, "e1")
		}
		if after, err := os.ReadFile(place); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: changed, %v", c.want, err)
		}
	}
	f.runTyping(t.Context(), newURL, failure, "", "opens none", "set", "-no-probe", "-allow-plain", "-sealed-keys", other, at, "a", "e1")
	f.runTyping(t.Context(), newURL, success, "", "", "set", "-no-probe", "-allow-plain", "-sealed-keys", f.keys("old"), f.at("webhooks"), "a", "e1")
	empty, err := store.OpenFile(f.path("empty"), nil)
	if err == nil {
		err = empty.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	f.runTyping(t.Context(), newURL, success, "", "", "set", "-no-probe", "-sealed-keys", other, f.at("empty"), "a", "e1")
}

// TestRotateKeys: a copy encrypts everything with the first key.
func TestRotateKeys(t *testing.T) {
	f := newFixture(t)
	at := f.sealed()["file"]
	f.run(t.Context(), success, "4 webhooks, 4 changes", "", "copy", "-migrate", "-sealed-keys", f.keys("new", "old"), at, f.at("rotated"))
	f.run(t.Context(), success, "", "", "audit", "-sealed-keys", f.keys("new"), f.at("rotated"))
	if strings.Contains(f.read("rotated"), "sealed.1.old.") {
		t.Error("the old key is still in use")
	}
}

// TestPlainURL: a URL that somebody without the keys put into a store with encrypted ones is named,
// and doesn't become an encrypted one, unless -allow-plain is given.
func TestPlainURL(t *testing.T) {
	f := newFixture(t)
	at := f.inSQLite("sealed")
	f.run(t.Context(), success, "4 webhooks", "", "copy", "-migrate", "-allow-plain", "-sealed-keys", f.keys("old"), f.at("webhooks"), at)
	db, err := sql.Open("sqlite", f.path("sealed.db"))
	if err == nil {
		_, err = db.Exec("UPDATE wh_client SET url = CAST('https://attacker.example/steal' AS BLOB) WHERE id = CAST('b' AS BLOB)")
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	both, to := f.keys("new", "old"), f.at("rotated")
	const named = "sealed.db: b, default: https://attacker.example since"
	for _, args := range [][]string{
		{"audit", "-sealed-keys", both, at},
		{"audit", "-sealed-keys", both, at, "b"},
		{"check", "-sealed-keys", both, at},
		{"copy", "-migrate", "-sealed-keys", both, at, to},
		{"verify", "-sealed-keys", both, at, to},
		{"verify", "-allow-plain", "-sealed-keys", both, to, at},
	} {
		f.run(t.Context(), found, named, "1 URLs aren't encrypted", args...)
	}
	f.run(t.Context(), success, "", "", "audit", "-sealed-keys", both, at, "a")
	f.run(t.Context(), found, "b: default: https://attacker.example", "", "check", at)
	f.run(t.Context(), failure, "", "give -allow-plain", "list", "-sealed-keys", both, at, "b")
	if out := f.output("clients", to); out != "" {
		t.Errorf("the copy has %s", out)
	}
	f.run(t.Context(), success, "4 webhooks", "", "copy", "-allow-plain", "-sealed-keys", both, at, to)
}

// TestPlainURLInAFile: check finds in a file what it finds in other stores, and never changes the file.
func TestPlainURLInAFile(t *testing.T) {
	f := newFixture(t)
	old := f.keys("old")
	f.run(t.Context(), found, "b, default: https://example.com since", "4 URLs aren't encrypted", "check", "-sealed-keys", old, f.at("webhooks"))
	f.run(t.Context(), success, "is intact: 4 changes", "", "check", "-allow-plain", "-sealed-keys", old, f.at("webhooks"))
	at := f.sealed()["file"]
	f.run(t.Context(), success, "is intact: 4 changes", "", "check", at)
	f.run(t.Context(), success, "is intact: 4 changes", "", "check", "-sealed-keys", old, at)
	f.apply(at, setAll("x"))
	f.run(t.Context(), success, "sealed is intact: 5 changes", "", "check", at)
	f.run(t.Context(), found, "sealed: x, default: https://example.com", "1 URLs aren't encrypted", "check", "-sealed-keys", old, at)
	torn := f.read("sealed") + `{"op":"se`
	if err := os.WriteFile(f.path("sealed"), []byte(torn), 0o600); err != nil {
		t.Fatal(err)
	}
	f.run(t.Context(), failure, "", "check a copy by admin salvage", "check", "-sealed-keys", old, at)
	f.run(t.Context(), success, "the last 9 bytes", "", "check", at)
	if f.read("sealed") != torn {
		t.Error("check changed the file")
	}
}

// TestEveryCommandReadsTheKeys: a file of keys that isn't there is an error, also for a command that
// needs no keys.
func TestEveryCommandReadsTheKeys(t *testing.T) {
	f := newFixture(t)
	for _, c := range commands {
		args := []string{c.name, "-sealed-keys", f.path("missing"), f.at("webhooks")}
		for !c.takes(len(args) - 3) {
			args = append(args, f.at("other"))
		}
		f.run(t.Context(), failure, "", "no such file", args...)
	}
}

// TestAllowPlainAlone: without keys, a copy with -allow-plain would leave URLs readable.
func TestAllowPlainAlone(t *testing.T) {
	f := newFixture(t)
	f.run(t.Context(), wrongUsage, "", "give -sealed-keys too", "copy", "-migrate", "-allow-plain", f.at("webhooks"), f.at("copy"))
	f.run(t.Context(), wrongUsage, "", "-sealed-keys: it's empty", "copy", "-migrate", "-allow-plain", "-sealed-keys", "", f.at("webhooks"), f.at("copy"))
	if _, err := os.Lstat(f.path("copy")); err == nil {
		t.Error("copied")
	}
}

// TestKeyFile: a file that isn't one of keys is refused, and nothing of it is shown.
func TestKeyFile(t *testing.T) {
	f := newFixture(t)
	path := f.path("keys")
	for content, want := range map[string]string{
		"":                           "0 keys",
		secret:                       "key 1 isn't an ID",
		secret + " " + secret:        "key 1 isn't an ID",
		keyLine("a") + "b AAAA\n":    "the secret of key \"b\" has 3 bytes",
		keyLine("a") + "b":           "key 2 isn't an ID",
		keyLine("a") + keyLine("a"):  "two keys have the ID",
		"a.b" + keyLine("a")[1:]:     "the ID of a key",
		"\ufeff" + keyLine("a"):      "U+FEFF",
		"a\u00a0" + keyLine("a")[2:]: "U+00A0",
		"\xff\xfea\x00":              "UTF-16",
		"a" + "\r" + keyLine("b"):    "U+000D",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f.run(t.Context(), failure, "", want, "clients", "-sealed-keys", path, f.at("webhooks"))
	}
	f.run(t.Context(), failure, "", "no such file", "clients", "-sealed-keys", f.path("missing"), f.at("webhooks"))
	if err := os.WriteFile(path, []byte("\t"+strings.ReplaceAll(keyLine("a"), "\n", "\r\n")+"\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.run(t.Context(), success, "a\n", "", "clients", "-sealed-keys", path, f.at("webhooks"))
	if runtime.GOOS == "windows" {
		return
	}
	keys := f.keys("old")
	if err := os.Chmod(keys, 0o644); err != nil {
		t.Fatal(err)
	}
	f.run(t.Context(), failure, "", "other users have access to the keys (mode 0644)", "clients", "-sealed-keys", keys, f.at("webhooks"))
	f.run(t.Context(), success, "a\n", "", "clients", "-shared", "-sealed-keys", keys, f.at("webhooks"))
}
