package table_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"example.com/go-webhookcfg/internal/table"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestSpansStayBounded adds keys and removes most of them, in a random order: a walk that
// starts anywhere sorts few keys, and no span is left nearly empty.
func TestSpansStayBounded(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	tb, u := new(table.Table), egress.NewURL("https://a.example/")
	const keys = 20 * table.MaxSpan
	order := r.Perm(keys)
	check := func(i int) {
		if lens := tb.Spans("acme"); slices.Max(lens) > table.MaxSpan {
			t.Fatalf("after %d changes, spans have %v keys", i, lens)
		}
	}
	for i, key := range order {
		tb.Apply(webhookcfg.SetChange("acme", webhookcfg.Entity(fmt.Sprint(key)), u))
		check(i)
	}
	for i, key := range order[:keys/2] {
		tb.Apply(webhookcfg.UnsetChange("acme", webhookcfg.Entity(fmt.Sprint(key))))
		check(i)
	}
	for i, key := range order[:keys/2] {
		tb.Apply(webhookcfg.SetChange("acme", webhookcfg.Entity(fmt.Sprint(key)), u))
		check(i)
	}
	for _, key := range order[10:] {
		tb.Apply(webhookcfg.UnsetChange("acme", webhookcfg.Entity(fmt.Sprint(key))))
	}
	if lens := tb.Spans("acme"); !slices.Equal(lens, []int{10}) {
		t.Errorf("ten keys are in spans of %v", lens)
	}
}

// TestEqualURLsShareMemory: from some size on, a table keeps one copy of a URL that was set
// lately.
func TestEqualURLsShareMemory(t *testing.T) {
	tb := new(table.Table)
	set := func(entity string, n int) *byte {
		c := webhookcfg.SetChange("acme", webhookcfg.Entity(entity), egress.NewURL(fmt.Sprintf("https://a.example/%d", n)))
		tb.Apply(c)
		return unsafe.StringData(tb.Resolve("acme", entity).URL.Reveal())
	}
	if set("a", 0) == set("b", 0) {
		t.Error("a small table shares URLs")
	}
	for n := range table.MinInterned {
		set(fmt.Sprint(n), n)
	}
	first := set("a", 1)
	set("b", 2)
	if set("c", 1) != first {
		t.Error("equal URLs have different memory")
	}
	for n := range table.MaxInterned {
		set("d", 10+n)
	}
	if set("e", 1) == first {
		t.Error("the table remembers more URLs than it should")
	}
}
