package linearizable

import (
	"fmt"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
)

// Store is one handle, such as one replica of a service has, on the state that
// all the handles of a check share.
type Store interface {
	webhookcfg.Store
	webhookcfg.Lister
}

// Workload says what the histories are like. [Hot] and [Spread] are where to begin;
// each of their fields can be changed.
type Workload struct {
	// Clients is how many clients the operations of a history are about. Each
	// history has clients that none had before.
	Clients int

	// Goroutines is how many goroutines a history has: the first number holds for
	// the first one, and so on in turn. Neighbours use different handles.
	Goroutines []int

	// Operations is how many operations a goroutine plays one after the other.
	Operations int

	// Histories is how many histories are recorded.
	Histories int

	// Disturb, if not nil, is called once in the middle of each history, beside its
	// operations, for instance to kill a server and start it again. Operations may
	// fail then: after a failure a goroutine waits until Disturb has returned. Its
	// error fails the test.
	Fault func() error
}

// Hot is a few goroutines that contend for one client.
func Hot() Workload {
	return Workload{Clients: 1, Goroutines: []int{2, 3, 4, 6, 8}, Operations: 25, Histories: 60}
}

// Spread is 32 goroutines and 12 clients, which between them keep every connection
// of a store busy.
func Spread() Workload {
	return Workload{Clients: 12, Goroutines: []int{32}, Operations: 20, Histories: 30}
}

// Check plays the histories of the workload and fails the test if one of them is not
// linearizable, if so many are undecided or so many operations failed that little
// is known, and at any failure where the workload disturbs nothing. It calls open
// once; all the handles that open returns are used.
func Check(t testing.TB, workload Workload, open func(t testing.TB) []Store) {
	t.Helper()
	sum := workload.run(t, open(t))
	t.Log(sum)
	if sum.illegal > 0 {
		t.Errorf("history %d is not linearizable", sum.histories)
	}
	sum.checkConclusive(t, workload)
}

// MustFail plays histories until one of them is not linearizable, and fails the
// test if none of the workload is. It is for stores that are known to be broken.
func MustFail(t testing.TB, workload Workload, open func(t testing.TB) []Store) {
	t.Helper()
	sum := workload.run(t, open(t))
	t.Log(sum)
	if sum.illegal == 0 {
		t.Error("a store that is not linearizable was never caught")
	}
	if workload.Fault == nil && sum.failed > 0 {
		t.Errorf("%d operations failed, the first with: %v", sum.failed, sum.first)
	}
}

// summary counts what came of the histories.
type summary struct {
	histories, operations      int
	illegal, undecided, failed int
	first                      error // of those that failed
}

func (s summary) String() string {
	return fmt.Sprintf("%d histories of %d operations in all: %d not linearizable, %d undecided; %d operations failed",
		s.histories, s.operations, s.illegal, s.undecided, s.failed)
}

// run plays histories until one is not linearizable.
func (s Workload) run(t testing.TB, stores []Store) (sum summary) {
	t.Helper()
	if len(stores) == 0 || s.Clients < 1 || s.Operations < 1 || s.Histories < 1 || len(s.Goroutines) == 0 {
		t.Fatal("linearizable: the workload plays nothing")
	}
	for number := range s.Histories {
		r := recorder{t: t, workload: s, stores: stores, number: number}
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

// checkConclusive fails the test where it cannot tell much.
func (s summary) checkConclusive(t testing.TB, workload Workload) {
	t.Helper()
	switch {
	case workload.Fault == nil && s.failed > 0:
		t.Errorf("%d operations failed, the first with: %v", s.failed, s.first)
	case s.failed > s.operations/4:
		t.Errorf("too many operations failed to tell, the first with: %v", s.first)
	}
	if s.undecided > s.histories/2 {
		t.Error("too many histories are undecided to tell")
	}
}
