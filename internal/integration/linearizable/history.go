package linearizable

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience is how long one operation may take, so that a store that hangs fails
// the test instead of holding it up.
const patience = 30 * time.Second

// round is one history while it is played.
type round struct {
	t       testing.TB
	setting Setting
	stores  []Store
	number  int

	workers   int
	start     time.Time
	clients   []string
	begun     atomic.Int64
	disturbed chan struct{}

	mu       sync.Mutex
	failures []error
}

// play plays the history and returns those of its operations that say something.
func (r *round) play() []porcupine.Operation {
	r.workers = r.setting.Goroutines[r.number%len(r.setting.Goroutines)]
	r.start, r.disturbed = time.Now(), make(chan struct{})
	for range r.setting.Clients {
		r.clients = append(r.clients, fmt.Sprintf("client-%x", rand.Uint64()))
	}
	played := make([][]porcupine.Operation, r.workers)
	var group sync.WaitGroup
	for g := range r.workers {
		group.Go(func() { played[g] = r.work(g) })
	}
	group.Wait()
	if r.setting.Disturb != nil {
		<-r.disturbed // it may outlast the operations
	}
	var all []porcupine.Operation
	for _, some := range played {
		all = append(all, some...)
	}
	return all
}

// work is what one goroutine does.
func (r *round) work(g int) (played []porcupine.Operation) {
	st := r.stores[g%len(r.stores)]
	for n := g * r.setting.Operations; n < (g+1)*r.setting.Operations; n++ {
		r.disturb()
		op, ok := r.operate(st, random(r.clients[rand.IntN(len(r.clients))], n))
		op.ClientId = g
		if ok {
			played = append(played, op)
		}
	}
	return played
}

// disturb has the disturbance begin with the operation in the middle.
func (r *round) disturb() {
	if r.begun.Add(1) == r.middle() && r.setting.Disturb != nil {
		go func() {
			defer close(r.disturbed)
			if err := r.setting.Disturb(); err != nil {
				r.t.Errorf("the disturbance of history %d: %v", r.number, err)
			}
		}()
	}
}

func (r *round) middle() int64 { return int64(r.workers*r.setting.Operations/2 + 1) }

// operate plays one operation; it reports whether the outcome says something.
func (r *round) operate(st Store, in input) (op porcupine.Operation, ok bool) {
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	called := time.Since(r.start)
	out, err := play(ctx, st, in)
	returned := int64(time.Since(r.start))
	if err != nil {
		r.fail(err)
		returned, out = math.MaxInt64, output{}
	}
	op = porcupine.Operation{Input: in, Output: out, Call: int64(called), Return: returned}
	return op, err == nil || in.kind == change
}

// fail notes an error and waits for the end of the disturbance that caused it.
func (r *round) fail(err error) {
	r.mu.Lock()
	r.failures = append(r.failures, err)
	r.mu.Unlock()
	if r.setting.Disturb != nil && r.begun.Load() >= r.middle() {
		<-r.disturbed
	}
}

var errUndecided = errors.New("the checker gave up")

// explain looks for an order of the operations that explains every answer. It
// gives up after a while, since there are histories for which it takes for ever.
func explain(ops []porcupine.Operation) (bool, error) {
	switch porcupine.CheckOperationsTimeout(model(), ops, 2*time.Second) {
	case porcupine.Ok:
		return true, nil
	case porcupine.Illegal:
		return false, nil
	default:
		return false, errUndecided
	}
}
