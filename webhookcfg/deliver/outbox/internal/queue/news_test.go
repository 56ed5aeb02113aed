package queue

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestNews: whatever the order in which transactions commit, each number that's committed within a
// minute of a later one is found once, soon, and what's never committed isn't looked for for ever.
func TestNews(t *testing.T) {
	t.Parallel()
	for seed := range 10 {
		random, now := rand.New(rand.NewPCG(uint64(seed), 1)), time.Unix(1_800_000_000, 0)
		committed := make(map[int64]time.Time)
		found := make(map[int64]time.Time)
		next := int64(1)
		var n news
		poll := func() {
			for isMore := true; isMore; {
				after, gaps := n.ask(now)
				var all []int64
				for _, number := range gaps {
					if at, ok := committed[number]; ok && !at.After(now) {
						all = append(all, number)
					}
				}
				page := 0
				for number := after + 1; number < next && page < newsPage; number++ {
					if at, ok := committed[number]; ok && !at.After(now) {
						all = append(all, number)
						page++
					}
				}
				for _, number := range all {
					if at, ok := found[number]; ok {
						t.Fatalf("history %d: %d is found twice, first at %v", seed, number, at)
					}
					found[number] = now
				}
				n.saw(all, now)
				isMore = page == newsPage
			}
		}
		for range 2000 {
			for range random.IntN(4) {
				number := next
				next++
				switch random.IntN(10) {
				case 0: // rolled back
				case 1:
					committed[number] = now.Add(time.Duration(random.IntN(50_000)) * time.Millisecond)
				default:
					committed[number] = now
				}
			}
			now = now.Add(time.Duration(random.IntN(100)) * time.Millisecond)
			poll()
		}
		for range 700 {
			now = now.Add(100 * time.Millisecond)
			poll()
		}
		for number, at := range committed {
			if took := found[number].Sub(at); took > 2*gapLater {
				t.Fatalf("history %d: %d is found %v after its commit", seed, number, took)
			}
		}
		if len(found) != len(committed) {
			t.Fatalf("history %d: %d of %d are found", seed, len(found), len(committed))
		}
		if len(n.gaps) > 0 {
			t.Errorf("history %d: %d numbers are still looked for", seed, len(n.gaps))
		}
	}
}

// TestManyGaps: numbers that are missing by the thousand, as after a failover, cost no memory.
func TestManyGaps(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	n := startNews(maxGaps + 5)
	n.saw([]int64{6, 1 << 40, 1<<40 + 3}, now)
	after, gaps := n.ask(now)
	if after != 1<<40+3 || len(gaps) != maxGaps || gaps[len(gaps)-1] != 1<<40+2 {
		t.Errorf("asks after %d for %d, the last one %d", after, len(gaps), gaps[len(gaps)-1])
	}
}
