package table_test

import (
	"fmt"
	"runtime"
	"testing"

	"example.com/go-webhookcfg/internal/table"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestMemoryIsGivenBack: overrides that were unset take no memory, except for their slots
// in the map, about half of it. Those are freed with the last override.
func TestMemoryIsGivenBack(t *testing.T) {
	const many, few = 30_000, 100
	url := egress.NewURL("https://h.example.com/")
	tb := new(table.Table)
	entity := func(round, n int) webhookcfg.Scope {
		if n < few {
			round = 0
		}
		return webhookcfg.Entity(fmt.Sprintf("%016d-%016d", n, round))
	}
	set := func(round, from int) {
		for n := from; n < many; n++ {
			tb.Apply(webhookcfg.SetChange("c", entity(round, n), url))
		}
	}
	unset := func(round int) {
		for n := few; n < many; n++ {
			// In an order that leaves gaps everywhere; 7919 shares no factor with the number.
			tb.Apply(webhookcfg.UnsetChange("c", entity(round, few+(n*7919)%(many-few))))
		}
	}
	empty := liveHeap()
	set(0, 0)
	full := liveHeap() - empty
	unset(0)
	if left := liveHeap() - empty; left > full*3/5 {
		t.Errorf("%d of %d bytes stay for %d of %d records", left, full, few, many)
	}
	for round := range 5 {
		set(round, few)
		unset(round)
	}
	set(5, few)
	if again := liveHeap() - empty; again > full+full/10 {
		t.Errorf("%d bytes after overrides of other entities; %d at first", again, full)
	}
	unset(5)
	for n := range few {
		tb.Apply(webhookcfg.UnsetChange("c", entity(0, n)))
	}
	if left := liveHeap() - empty; left > full/100 {
		t.Errorf("%d of %d bytes stay for no records", left, full)
	}
	runtime.KeepAlive(tb)
}

func liveHeap() int64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}
