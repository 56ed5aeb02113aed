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

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/anishathalye/porcupine"
)

// timeout is for one operation, so that a store that hangs fails the test and doesn't block
// it.
const timeout = 2 * time.Minute

// recorder runs one history and records its operations.
type recorder struct {
	t        testing.TB
	workload Workload
	stores   []Store
	number   int

	workers   int
	start     time.Time
	clients   []string
	started   atomic.Int64
	faultDone chan struct{}

	mu       sync.Mutex
	failures []error
}

// run runs the history and returns the operations that say something about the state.
func (r *recorder) run() []porcupine.Operation {
	r.workers = r.workload.Goroutines[r.number%len(r.workload.Goroutines)]
	r.start, r.faultDone = time.Now(), make(chan struct{})
	for range r.workload.Clients {
		r.clients = append(r.clients, fmt.Sprintf("client-%x", rand.Uint64()))
	}
	recorded := make([][]porcupine.Operation, r.workers)
	var group sync.WaitGroup
	for g := range r.workers {
		group.Go(func() { recorded[g] = r.worker(g) })
	}
	group.Wait()
	if r.workload.Fault != nil {
		<-r.faultDone // it can take longer than the operations
	}
	var all []porcupine.Operation
	for _, some := range recorded {
		all = append(all, some...)
	}
	return all
}

// worker runs the operations of one goroutine.
func (r *recorder) worker(g int) (recorded []porcupine.Operation) {
	st := r.stores[g%len(r.stores)]
	for n := g * r.workload.Operations; n < (g+1)*r.workload.Operations; n++ {
		r.injectFault()
		op, ok := r.invoke(st, randomInput(r.clients[rand.IntN(len(r.clients))], n))
		op.ClientId = g
		if ok {
			recorded = append(recorded, op)
		}
	}
	return recorded
}

// injectFault starts the fault at the operation in the middle of the history.
func (r *recorder) injectFault() {
	if r.started.Add(1) == r.middle() && r.workload.Fault != nil {
		go func() {
			defer close(r.faultDone)
			if err := r.workload.Fault(); err != nil {
				r.t.Errorf("the fault of history %d: %v", r.number, err)
			}
		}()
	}
}

func (r *recorder) middle() int64 { return int64(r.workers*r.workload.Operations/2 + 1) }

// invoke runs one operation. ok is false if it says nothing about the state.
func (r *recorder) invoke(st Store, in input) (op porcupine.Operation, ok bool) {
	ctx, cancel := context.WithTimeout(r.t.Context(), timeout)
	defer cancel()
	called := time.Since(r.start)
	out, err := call(ctx, st, in)
	returned := int64(time.Since(r.start))
	if err != nil {
		r.recordError(err)
		returned, out = math.MaxInt64, output{}
	}
	op = porcupine.Operation{Input: in, Output: out, Call: int64(called), Return: returned}
	return op, err == nil || in.kind == change
}

// recordError records an error, and waits for the end of the fault behind it.
func (r *recorder) recordError(err error) {
	r.mu.Lock()
	r.failures = append(r.failures, err)
	r.mu.Unlock()
	if r.workload.Fault != nil && r.started.Load() >= r.middle() {
		<-r.faultDone
	}
}

var errUndecided = errors.New("linearizable: checker gave up")

// maxSteps limits a search, which takes exponentially many steps for some histories. We don't
// limit the time, because a busy machine would then leave more histories undecided.
const maxSteps = 1 << 20

// checkHistory searches for an order of the operations that explains every response.
func checkHistory(ops []porcupine.Operation) (bool, error) {
	var steps atomic.Int64
	limited := model()
	limited.Step = func(s, in, out any) (bool, any) {
		if steps.Add(1) > maxSteps {
			return false, s // the search ends soon
		}
		return step(s, in, out)
	}
	ok := porcupine.CheckOperations(limited, ops)
	if steps.Load() > maxSteps {
		return false, errUndecided
	}
	return ok, nil
}

// randomInput returns the n-th operation of a history. n is also its time.
func randomInput(client string, n int) input {
	in := input{client: client, entity: rand.IntN(entities), at: int64(n + 1)}
	switch rand.IntN(10) {
	case 0, 1, 2, 3:
		if rand.IntN(3) == 0 {
			in.entity = entities
		}
		if rand.IntN(3) > 0 {
			in.url = fmt.Sprintf("https://h.example.com/%d", in.at)
		}
	case 4, 5:
		in.kind = resolve
	default:
		in.kind = list
	}
	return in
}

// call calls the store's method for an operation.
func call(ctx context.Context, st Store, in input) (output, error) {
	name := fmt.Sprint("e", in.entity)
	switch in.kind {
	case resolve:
		hook, err := st.Resolve(ctx, in.client, name)
		return output{source: hook.Source, entry: newEntry(hook)}, err
	case list:
		page, err := st.List(ctx, in.client, "", entities)
		if err != nil {
			return output{}, err
		}
		seen, err := newState(page)
		return output{page: seen}, err
	}
	return output{}, st.Apply(ctx, in.change(name))
}

func (in input) change(name string) webhookcfg.Change {
	scope := webhookcfg.Entity(name)
	if in.entity == entities {
		scope = webhookcfg.All()
	}
	c := webhookcfg.UnsetChange(in.client, scope)
	if in.url != "" {
		c = webhookcfg.SetChange(in.client, scope, egress.NewURL(in.url))
	}
	c.Time = time.Unix(in.at, 0)
	return c
}

func newEntry(hook webhookcfg.Webhook) entry {
	if hook.Source == webhookcfg.SourceNone {
		return entry{}
	}
	return entry{hook.URL.Reveal(), hook.Since.Unix()}
}

func newState(page webhookcfg.Page) (state, error) {
	s := state{base: newEntry(page.Base)}
	for _, o := range page.Overrides {
		var e int
		if _, err := fmt.Sscanf(o.Entity, "e%d", &e); err != nil || e < 0 || e >= entities {
			return s, fmt.Errorf("unexpected override of %q in the page", o.Entity)
		}
		s.overrides[e] = newEntry(o.Webhook)
	}
	return s, nil
}
