package oplog_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestTally compares with a map what a tally tells of changes that come and go.
func TestTally(t *testing.T) {
	var changes []webhookcfg.Change
	for i := range 300 {
		client := fmt.Sprint("client-", i%100)
		changes = append(changes, set(client, fmt.Sprint(i), "https://a.example/"), unset(client, fmt.Sprint(i+1)))
		if i%10 == 0 {
			changes = append(changes, unsetAll(client))
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	tally, counted := oplog.NewTally(), map[[2]string]int{}
	asked, wrong := 0, 0
	for range 20_000 {
		c := changes[rng.IntN(len(changes))]
		key, n := [2]string{c.Client, c.Scope.Entity()}, 1
		if counted[key] > 0 {
			n = -1
		}
		tally.Add([]webhookcfg.Change{c}, n)
		counted[key] += n
		client, entity := fmt.Sprint("client-", rng.IntN(100)), fmt.Sprint(rng.IntN(400))
		want := counted[[2]string{client, entity}]+counted[[2]string{client, ""}] > 0
		asked++
		if got := tally.Reaches(client, entity); want && !got {
			t.Fatalf("a change of %s %s is forgotten", client, entity)
		} else if got != want {
			wrong++
		}
	}
	if wrong > asked/5 {
		t.Errorf("told %d times of %d of changes that there were not", wrong, asked)
	}
	for key, n := range counted {
		scope := webhookcfg.All()
		if key[1] != "" {
			scope = webhookcfg.Entity(key[1])
		}
		tally.Add([]webhookcfg.Change{webhookcfg.Unset(key[0], scope)}, -n)
	}
	for i := range 1000 {
		if tally.Reaches("client-1", fmt.Sprint(i)) {
			t.Fatal("tells of changes when all are gone")
		}
	}
}
