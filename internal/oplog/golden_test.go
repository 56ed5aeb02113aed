package oplog_test

import (
	"bytes"
	"os"
	"testing"

	"example.com/go-webhookcfg/internal/oplog"
)

// goldens are the files of testdata as the code under test writes them. Every version of
// this package must read them: add files, never change one.
func goldens(t *testing.T) map[string]*image {
	first := func() *image {
		return newImage(t).
			batch(at(1, set("acme", "e1", "https://a.example/hook?token=1"))).
			batch(at(2, setAll("acme", "https://a.example/all")), at(3, unset("acme", "e1")), at(4, unset("acme", "all"))).
			batch(unsetAll("gone"), at(5, set("acme", "e1@x:~", "https://[2001:db8::1]:8443/"))).
			batch(at(6, set("Ünï\"cödé\\\x01\u2028", "\n😀\x7f", "https://a.example/<&>é")))
	}
	return map[string]*image{
		"v1.jsonl":           first().seal().batch(at(7, unset("acme", "e3"))).seal(),
		"v1-open.jsonl":      first(),
		"v1-compacted.jsonl": first().compacted().batch(at(7, unset("acme", "e3"))).seal(),
	}
}

func TestGoldenFiles(t *testing.T) {
	for name, m := range goldens(t) {
		golden, err := os.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := open(t, golden, oplog.Options{}); got.err != nil || got.state != m.state() {
			t.Errorf("%s is no longer read: %v\n%s", name, got.err, got.state)
		}
		if !bytes.Equal(golden, m.content) {
			t.Errorf("%s is written differently:\n%s", name, m.content)
		}
	}
}
