package oplog_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/webhookcfg"
)

// randomChange returns a change of few clients and URLs, with ids of all lengths.
func randomChange(r *rand.Rand) webhookcfg.Change {
	client := fmt.Sprint("client-", r.IntN(20), []string{"", `"`, "\n"}[r.IntN(3)])
	entity := fmt.Sprint(r.IntN(1000), []string{"", "\\", "é"}[r.IntN(3)], strings.Repeat("x", r.IntN(5)*r.IntN(100)))
	url := fmt.Sprintf("https://a.example/%d%s", r.IntN(50), []string{"", `"`}[r.IntN(2)])
	return at(r.IntN(1e6), []webhookcfg.Change{
		set(client, entity, url), setAll(client, url), unset(client, entity), unsetAll(client),
	}[r.IntN(4)])
}

// TestDecodedChangesDoNotAliasTheLine decodes many lines from the same buffer, and checks the
// changes only after it was overwritten.
func TestDecodedChangesDoNotAliasTheLine(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var space []byte
	var want []string
	var got []webhookcfg.Change
	for n := range 3000 {
		c := randomChange(r)
		line, err := oplog.Encode(c, int64(n))
		if err != nil {
			t.Fatal(err)
		}
		space = append(space[:0], line...)
		decoded, synced, ok := oplog.Decode(space)
		if !ok || synced != int64(n) {
			t.Fatalf("%q is not decoded", line)
		}
		want, got = append(want, describe(c)), append(got, decoded)
	}
	for n := range want {
		if got := describe(got[n]); got != want[n] {
			t.Fatalf("change %d became\n%s, want\n%s", n, got, want[n])
		}
	}
}
