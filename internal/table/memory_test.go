package table_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/table"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestMemoryIsGivenBack: what a table weighs depends on what it holds, but for the
// little that the overflow and the map of long ids once needed.
func TestMemoryIsGivenBack(t *testing.T) {
	const many, few = 30_000, 100
	// Every fourth id is too long to lie in its record.
	entity := func(n int) string { return fmt.Sprintf("%08d", n) + strings.Repeat("x", n%4/3*60) }
	url := egress.NewURL("https://h.example.com/")
	tb := new(table.Table)
	set := func(from int) {
		for n := from; n < many; n++ {
			tb.Apply(webhookcfg.Set("c", webhookcfg.Entity(entity(n)), url))
		}
	}
	unset := func() {
		for n := few; n < many; n++ {
			// In an order that leaves gaps everywhere; 7919 shares no factor with the number.
			tb.Apply(webhookcfg.Unset("c", webhookcfg.Entity(entity(few+(n*7919)%(many-few)))))
		}
	}
	empty := liveHeap()
	set(0)
	full := liveHeap() - empty
	unset()
	if left := liveHeap() - empty; left > full/4 {
		t.Errorf("%d of %d bytes stay for %d of %d records", left, full, few, many)
	}
	for range 3 {
		set(few)
		unset()
	}
	set(few)
	if again := liveHeap() - empty; again > full+full/10 {
		t.Errorf("%d bytes, filled again and again; %d at first", again, full)
	}
	runtime.KeepAlive(tb)
}

func liveHeap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
