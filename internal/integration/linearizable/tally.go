package linearizable

import (
	"fmt"
	"testing"
)

// tally counts what came of the histories.
type tally struct {
	histories, operations      int
	illegal, undecided, failed int
	first                      error // of those that failed
}

func (s tally) String() string {
	return fmt.Sprintf("%d histories of %d operations in all: %d not linearizable, %d undecided; %d operations failed",
		s.histories, s.operations, s.illegal, s.undecided, s.failed)
}

// run plays histories until one is not linearizable.
func (s Setting) run(t testing.TB, stores []Store) (sum tally) {
	t.Helper()
	if len(stores) == 0 || s.Clients < 1 || s.Operations < 1 || s.Rounds < 1 || len(s.Goroutines) == 0 {
		t.Fatal("linearizable: the setting plays nothing")
	}
	for number := range s.Rounds {
		r := round{t: t, setting: s, stores: stores, number: number}
		ops := r.play()
		sum.add(&r)
		switch ok, err := explain(ops); {
		case err != nil:
			sum.undecided++
		case !ok:
			sum.illegal++
		}
		if sum.illegal > 0 {
			break
		}
	}
	return sum
}

func (s *tally) add(r *round) {
	s.histories++
	s.operations += r.workers * r.setting.Operations
	if len(r.failures) > 0 && s.first == nil {
		s.first = r.failures[0]
	}
	s.failed += len(r.failures)
}

// doubt fails the test where it cannot tell much.
func (s tally) doubt(t testing.TB, setting Setting) {
	t.Helper()
	switch {
	case setting.Disturb == nil && s.failed > 0:
		t.Errorf("%d operations failed, the first with: %v", s.failed, s.first)
	case s.failed > s.operations/4:
		t.Errorf("too many operations failed to tell, the first with: %v", s.first)
	}
	if s.undecided > s.histories/2 {
		t.Error("too many histories are undecided to tell")
	}
}
