package linearizable

import (
	"fmt"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
)

// Store is a handle on the state that all handles of a check share. It stands for one
// replica of a service.
type Store interface {
	webhookcfg.Store
	webhookcfg.Lister
}

// Workload describes the histories to run. Start with [Hot] or [Spread], and change the
// fields if you like.
type Workload struct {
	// Clients is how many clients a history has. Two histories never share one.
	Clients int

	// Goroutines lists how many goroutines the histories have, in turn. Neighbouring
	// goroutines use different handles.
	Goroutines []int

	// Operations is how many operations each goroutine makes, one after another.
	Operations int

	// Histories is how many histories to run.
	Histories int

	// Fault is called in the middle of each history, while operations are running. It can
	// kill a server and start it again, for instance. Operations can fail from then on, and
	// after a failure a goroutine waits until Fault has returned. If Fault returns an error,
	// the test fails. By default, there's no fault.
	Fault func() error
}

// Hot makes a few goroutines compete for one client.
func Hot() Workload {
	return Workload{Clients: 1, Goroutines: []int{2, 3, 4, 6, 8}, Operations: 25, Histories: 60}
}

// Spread has 32 goroutines and 12 clients, which keep every connection of a store busy.
func Spread() Workload {
	return Workload{Clients: 12, Goroutines: []int{32}, Operations: 20, Histories: 30}
}

// Check runs the workload with all handles that open returns. It calls open once. The test
// fails if a history isn't linearizable, or if the histories prove too little because many
// are undecided or many operations failed. Without a fault in the workload, no operation may
// fail.
func Check(t testing.TB, workload Workload, open func(t testing.TB) []Store) {
	t.Helper()
	sum := workload.run(t, open(t))
	t.Log(sum)
	if sum.illegal > 0 {
		t.Errorf("history %d is not linearizable", sum.histories)
	}
	sum.checkConclusive(t, workload)
}

// MustFail runs the workload until a history isn't linearizable. The test fails if all of
// them are. Use it for stores that you broke on purpose. Their operations can fail.
func MustFail(t testing.TB, workload Workload, open func(t testing.TB) []Store) {
	t.Helper()
	sum := workload.run(t, open(t))
	t.Log(sum)
	if sum.illegal == 0 {
		t.Error("a store that is not linearizable was never caught")
	}
}

// summary counts how histories and operations ended.
type summary struct {
	histories, operations      int
	illegal, undecided, failed int
	first                      error // of the failed operations
}

func (s summary) String() string {
	return fmt.Sprintf("%d histories of %d operations in all: %d not linearizable, %d undecided; %d operations failed",
		s.histories, s.operations, s.illegal, s.undecided, s.failed)
}

// run runs histories until one isn't linearizable.
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

// checkConclusive fails the test if the histories prove too little.
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
