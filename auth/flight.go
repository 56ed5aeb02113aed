package auth

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"example.com/go-webhookcfg/webhookcfg"
)

// flights lets those who present the same credential at the same time share one
// check. An outcome is for those who wait when it comes, and for nobody later.
type flights[K comparable] struct {
	mu    sync.Mutex
	byKey map[K]*flight
}

// flight is a check that somebody waits for.
type flight struct {
	cancel  context.CancelFunc
	waiting int
	done    chan struct{} // closed once what follows is set
	client  webhookcfg.Client
	err     error
	panic   *verifierPanic
}

type check func(context.Context) (webhookcfg.Client, error)

// do returns what run returns, or the error of ctx if that ends earlier. The
// context of the check has the values of the first caller's, and ends when nobody
// waits any more: one caller who hangs up does not fail the others.
func (f *flights[K]) do(ctx context.Context, key K, run check) (webhookcfg.Client, error) {
	shared := f.join(ctx, key, run)
	defer f.leave(key, shared)
	select {
	case <-ctx.Done():
		return webhookcfg.Client{}, ctx.Err()
	case <-shared.done:
	}
	if shared.panic != nil {
		panic(shared.panic)
	}
	return shared.client, shared.err
}

func (f *flights[K]) join(ctx context.Context, key K, run check) *flight {
	f.mu.Lock()
	defer f.mu.Unlock()
	shared := f.byKey[key]
	if shared == nil {
		ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
		shared = &flight{cancel: cancel, done: make(chan struct{}), err: errNoReturn}
		if f.byKey == nil {
			f.byKey = map[K]*flight{}
		}
		f.byKey[key] = shared
		go f.fly(ctx, key, shared, run)
	}
	shared.waiting++
	return shared
}

func (f *flights[K]) fly(ctx context.Context, key K, shared *flight, run check) {
	defer shared.cancel()
	defer close(shared.done)
	defer f.land(key, shared)
	defer func() {
		if value := recover(); value != nil {
			shared.panic = &verifierPanic{value, debug.Stack()}
		}
	}()
	shared.client, shared.err = run(ctx)
}

func (f *flights[K]) leave(key K, shared *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	shared.waiting--
	if shared.waiting == 0 {
		f.forget(key, shared)
		shared.cancel()
	}
}

func (f *flights[K]) land(key K, shared *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(key, shared)
}

// forget sees to it that nobody joins the flight any more; f.mu is held.
func (f *flights[K]) forget(key K, shared *flight) {
	if f.byKey[key] == shared {
		delete(f.byKey, key)
	}
}

var errNoReturn = errors.New("auth: the verifier ended its goroutine")

// verifierPanic takes a panic of the verifier to those who wait for it.
type verifierPanic struct {
	value any
	stack []byte
}

func (p *verifierPanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

func (p *verifierPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
