package egress

import (
	"context"
	"sync"
)

// flights lets those who want the same at the same time share one piece of work.
// A result is for those who wait when it comes, and for nobody later.
type flights struct {
	mu    sync.Mutex
	byKey map[string]*flight
}

// flight is a piece of work that somebody waits for.
type flight struct {
	cancel  context.CancelFunc
	waiting int
	done    chan struct{} // closed once the others are set
	err     error
	panic   any // what the work panicked with, for those who wait
}

// do returns what work returns, or the error of ctx if that ends earlier; it
// panics if work does, in the goroutine of each caller. The
// context of the work has the values of the first caller's, and ends when nobody
// waits any more: one caller who hangs up does not fail the others.
func (f *flights) do(ctx context.Context, key string, work func(context.Context) error) error {
	shared := f.join(ctx, key, work)
	defer f.leave(key, shared)
	select {
	case <-shared.done:
		if shared.panic != nil {
			panic(shared.panic)
		}
		return shared.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *flights) join(ctx context.Context, key string, work func(context.Context) error) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	shared := f.byKey[key]
	if shared == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		shared = &flight{cancel: cancel, done: make(chan struct{})}
		if f.byKey == nil {
			f.byKey = map[string]*flight{}
		}
		f.byKey[key] = shared
		go f.run(ctx, key, shared, work)
	}
	shared.waiting++
	return shared
}

func (f *flights) run(ctx context.Context, key string, shared *flight, work func(context.Context) error) {
	defer close(shared.done)
	defer f.land(key, shared)
	defer func() { shared.panic = recover() }()
	shared.err = work(ctx)
}

func (f *flights) land(key string, shared *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(key, shared)
	shared.cancel()
}

func (f *flights) leave(key string, shared *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	shared.waiting--
	if shared.waiting == 0 {
		f.forget(key, shared)
		shared.cancel()
	}
}

// forget sees to it that nobody joins the flight any more; f.mu is held.
func (f *flights) forget(key string, shared *flight) {
	if f.byKey[key] == shared {
		delete(f.byKey, key)
	}
}
