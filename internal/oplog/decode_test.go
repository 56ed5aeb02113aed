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

// TestInternedTextsStayDistinct decodes many lines with one decoder, from a buffer that is
// overwritten, and checks the changes only afterwards.
func TestInternedTextsStayDistinct(t *testing.T) {
	for _, lines := range []int64{0, 1, 40, 1000, 1 << 40} {
		r := rand.New(rand.NewPCG(1, uint64(lines)))
		decode := oplog.NewDecode(lines)
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
			decoded, synced, ok := decode(space)
			if !ok || synced != int64(n) {
				t.Fatalf("%q is not decoded", line)
			}
			want, got = append(want, describe(c)), append(got, decoded)
		}
		for n := range want {
			if got := describe(got[n]); got != want[n] {
				t.Fatalf("for %d lines, change %d became\n%s, want\n%s", lines, n, got, want[n])
			}
		}
	}
}

// TestRepeatedClientsAndURLsDoNotAllocate: a log of a million lines has few clients, and
// often few URLs. Only the entity of a line is allocated.
func TestRepeatedClientsAndURLsDoNotAllocate(t *testing.T) {
	decode := oplog.NewDecode(1 << 20)
	line, err := oplog.Encode(set("acme", "e1", "https://a.example/"), 0)
	if err != nil {
		t.Fatal(err)
	}
	if perLine := testing.AllocsPerRun(1000, func() { decode(line) }); perLine > 1 {
		t.Errorf("%v allocations per line", perLine)
	}
}
