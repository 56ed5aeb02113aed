package oplog_test

import (
	"bytes"
	"os"
	"slices"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/webhookcfg"
)

// goldens are the files of testdata as the code under test writes them, by name without the
// version in front. Every version of this package must read the files of all earlier ones, so
// add files, but never change one.
func goldens(t *testing.T, precision time.Duration) map[string]*image {
	at := func(n int, c webhookcfg.Change) webhookcfg.Change {
		c = at(n, c)
		c.Time = c.Time.Truncate(precision)
		return c
	}
	first := func() *image {
		return newImage(t).
			batch(at(1, set("acme", "e1", "https://a.example/hook?token=1"))).
			batch(at(2, setAll("acme", "https://a.example/all")), at(3, unset("acme", "e1")), at(4, unset("acme", "all"))).
			batch(unsetAll("gone"), at(5, set("acme", "e1@x:~", "https://[2001:db8::1]:8443/"))).
			batch(at(6, set("Ünï\"cödé\\\x01\u2028", "\n😀\x7f", "https://a.example/<&>é")))
	}
	return map[string]*image{
		".jsonl":           first().seal().batch(at(7, unset("acme", "e3"))).seal(),
		"-open.jsonl":      first(),
		"-compacted.jsonl": first().compacted().batch(at(7, unset("acme", "e3"))).seal(),
	}
}

func golden(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestGoldenFiles(t *testing.T) {
	for name, m := range goldens(t, time.Microsecond) {
		golden := golden(t, "v2"+name)
		if got := open(t, golden, oplog.Options{}); got.err != nil || got.state != m.state() {
			t.Errorf("%s is no longer read: %v\n%s", name, got.err, got.state)
		}
		if !bytes.Equal(golden, m.content) {
			t.Errorf("%s is written differently:\n%s", name, m.content)
		}
	}
}

// TestGoldenFilesOfVersion1 opens files without fractions of seconds. Only their headers
// change.
func TestGoldenFilesOfVersion1(t *testing.T) {
	for name, m := range goldens(t, time.Second) {
		content := golden(t, "v1"+name)
		fs := faultfs.New()
		fs.WriteFile("log", content)
		if _, n, err := oplog.Check(t.Context(), fs, "log", silent, func(oplog.Region) {}); err != nil || n != len(m.changes) || !bytes.Equal(fs.ReadFile("log"), content) {
			t.Errorf("%s was checked as %d changes, %v, and is now\n%s", name, n, err, fs.ReadFile("log"))
		}
		if s := salvageContent(t, content); s.err != nil || s.state != m.state() {
			t.Errorf("%s was salvaged as\n%s, %v", name, s.state, s.err)
		}
		got := open(t, content, oplog.Options{})
		want := slices.Concat(oplog.EncodeHeader(int64(len(m.content))), m.content[oplog.HeaderLen:])
		if got.err != nil || got.state != m.state() || !bytes.Equal(got.content, want) {
			t.Errorf("%s was opened as\n%s and became\n%s, %v", name, got.state, got.content, got.err)
		}
		if again := open(t, got.content, oplog.Options{}); again.state != got.state || !bytes.Equal(again.content, got.content) {
			t.Errorf("%s changed when it was opened again: %v\n%s", name, again.err, again.content)
		}
	}
}
