package oplog_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
)

// upgradeFaults opens logs of version 1 and appends a change that only version 2 can hold. It
// makes each call of a file fail or stop the world once, and also decides the others. It
// returns everything that's wrong after a power failure at that moment, and after opening the
// log once more.
func upgradeFaults(t *testing.T, also func(faultfs.Call) faultfs.Outcome) (cases int, wrong []string) {
	change := at(9, set("acme", "e9", "https://a.example/9"))
	for file, m := range goldens(t, time.Second) {
		old := golden(t, "v1"+file)
		before := m.state()
		after := m.batch(change).state()
		for n, outcome := range []faultfs.Outcome{faultfs.Stop, faultfs.Fail, faultfs.FailHalfway, faultfs.FailAfter} {
			first, step := 1+2*n, 8
			if *full {
				first, step = 1, 1
			}
			var reached atomic.Bool
			reached.Store(true)
			for k := first; reached.Swap(false); k += step {
				fs := faultfs.New()
				fs.WriteFile("log", old)
				fs.WriteFile("log.lock", []byte("there is a log"))
				fs.Decide(func(c faultfs.Call) faultfs.Outcome {
					if c.N == k {
						reached.Store(true)
						return outcome
					}
					return also(c)
				})
				acknowledged := false
				l, err := oplog.Open(fs, "log", newModel(), oplog.Options{})
				if err == nil {
					acknowledged = l.Append(t.Context(), change) == nil
				}
				where := fmt.Sprintf("%s, call %d with outcome %q", file, k, outcome)
				for _, keep := range keeps(fs) {
					disk := fs.Crash(keep)
					content := disk.ReadFile("log")
					got := open(t, content, oplog.Options{})
					cases++
					isNew := got.state == after
					if got.err != nil || got.state != before && !isNew || acknowledged && !isNew {
						wrong = append(wrong, fmt.Sprintf("%s: %v, opened with\n%s", where, got.err, got.state))
					}
					if versions := oplog.HeaderVersions(content); isNew && slices.Contains(versions[:], 1) {
						wrong = append(wrong, where+": a program of version 1 opens a file of version 2")
					}
					if again := open(t, got.content, oplog.Options{}); got.err == nil && !bytes.Equal(again.content, got.content) {
						wrong = append(wrong, where+": the next opening does not complete the upgrade")
					}
				}
				if l != nil {
					_ = l.Close()
				}
			}
		}
	}
	return cases, wrong
}

// keeps are what a power failure may keep: the first bytes of what is pending, or any part.
func keeps(fs *faultfs.FS) (all []faultfs.Keep) {
	for size := 0; size <= fs.Pending(); size += 53 * sampled(5) {
		all = append(all, faultfs.First(size))
	}
	all = append(all, faultfs.Everything)
	for seed := range uint64(5) {
		all = append(all, faultfs.Some(rand.New(rand.NewPCG(seed, 0))))
	}
	return all
}

func TestUpgradeInterruptedAtEveryCall(t *testing.T) {
	cases, wrong := upgradeFaults(t, pretend(""))
	t.Logf("%d cases", cases)
	for _, w := range wrong[:min(len(wrong), 5)] {
		t.Error(w)
	}
	if _, wrong := upgradeFaults(t, pretend(faultfs.OpSync)); len(wrong) == 0 {
		t.Error("the test cannot fail: without syncs, nothing is wrong")
	}
}
