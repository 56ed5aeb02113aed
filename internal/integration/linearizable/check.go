package linearizable

import (
	"fmt"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
)

// Store is one handle, such as that of one replica of a service, on the state that all
// handles of a check share.
type Store interface {
	webhookcfg.Store
	webhookcfg.Lister
}

// Workload describes the histories to run. [Hot] and [Spread] are good starting
// points; the caller may change their fields.
type Workload struct {
	// Clients is the number of clients in a history. No client occurs in two
	// histories.
	Clients int

	// Goroutines lists numbers of goroutines, which the histories use in turn.
	// Neighbouring goroutines use different handles.
	Goroutines []int

	// Operations is the number of operations of one goroutine, in sequence.
	Operations int

	// Histories is the number of histories.
	Histories int

	// Fault, if not nil, is called once in the middle of each history, concurrently
	// with its operations, for instance to kill a server and start it again. Operations
	// may fail from then on: after a failure a goroutine waits until Fault has returned.
	// An error of Fault fails the test.
	Fault func() error
}

// Hot has a few goroutines contend for one client.
func Hot() Workload {
	return Workload{Clients: 1, Goroutines: []int{2, 3, 4, 6, 8}, Operations: 25, Histories: 60}
}

// Spread has 32 goroutines and 12 clients, enough to keep every connection of a store
// busy.
func Spread() Workload {
	return Workload{Clients: 12, Goroutines: []int{32}, Operations: 20, Histories: 30}
}

// Check runs the workload and fails the test if a history is not linearizable, if too
// many histories are undecided or too many operations failed to conclude anything, and
// at any failed operation of a workload without a fault. It calls open once, and uses
// all handles that open returns.
func Check(t testing.TB, workload Workload, open func(t testing.TB) []Store) {
	t.Helper()
	sum := workload.run(t, open(t))
	t.Log(sum)
	if sum.illegal > 0 {
		t.Errorf("history %d is not linearizable", sum.histories)
	}
	sum.checkConclusive(t, workload)
}

// MustFail runs the workload until a history is not linearizable, and fails the test if
// all of them are. It is for stores that are known to be broken, whose operations may fail.
func MustFail(t testing.TB, workload Workload, open func(t testing.TB) []Store) {
	t.Helper()
	sum := workload.run(t, open(t))
	t.Log(sum)
	if sum.illegal == 0 {
		t.Error("a store that is not linearizable was never caught")
	}
}

// summary counts the outcomes of histories and operations.
type summary struct {
	histories, operations      int
	illegal, undecided, failed int
	first                      error // of the failed operations
}

func (s summary) String() string {
	return fmt.Sprintf("%d histories of %d operations in all: %d not linearizable, %d undecided; %d operations failed",
		s.histories, s.operations, s.illegal, s.undecided, s.failed)
}

// run runs histories until one is not linearizable.
func (w Workload) run(t testing.TB, stores []Store) (sum summary) {
	t.Helper()
	if len(stores) == 0 || w.Clients < 1 || w.Operations < 1 || w.Histories < 1 || len(w.Goroutines) == 0 {
		t.Fatal("linearizable: empty workload")
	}
	for number := range w.Histories {
		r := recorder{t: t, workload: w, stores: stores, number: number}
		ops := r.run()
		sum.add(&r)
		switch ok, err := checkHistory(ops); {
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

func (s *summary) add(r *recorder) {
	s.histories++
	s.operations += r.workers * r.workload.Operations
	if len(r.failures) > 0 && s.first == nil {
		s.first = r.failures[0]
	}
	s.failed += len(r.failures)
}

// checkConclusive fails the test where the outcomes prove little.
func (s summary) checkConclusive(t testing.TB, workload Workload) {
	t.Helper()
	switch {
	case workload.Fault == nil && s.failed > 0:
		t.Errorf("%d operations failed, the first with: %v", s.failed, s.first)
	case s.failed > s.operations/4:
		t.Errorf("too many operations failed for a conclusion, the first with: %v", s.first)
	}
	if s.undecided > s.histories/2 {
		t.Error("too many histories are undecided for a conclusion")
	}
}
