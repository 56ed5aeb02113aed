// Package singleflight deduplicates concurrent calls with the same key. Results
// are not cached.
//
// It adds to golang.org/x/sync/singleflight what a server needs of it. There, work
// that panics on behalf of DoChan ends the process, and work that ends its goroutine
// leaves the callers of DoChan waiting for ever; work that uses the context of
// the first caller fails every caller when the first one leaves; and results have
// no type.
package singleflight

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/singleflight"
)

// ErrGoexit is returned to every caller whose work called [runtime.Goexit].
var ErrGoexit = errors.New("singleflight: runtime.Goexit called")

// Group deduplicates calls. The zero value is ready for use. A Group must not be
// copied after its first use, and is safe for concurrent use.
type Group[V any] struct {
	calls singleflight.Group
}

// Do calls work, or waits for a call of the same key that is under way, and returns
// its result. It returns the error of ctx if ctx ends earlier; the work goes on
// for the other callers, and for none.
//
// The context of the work has the values of the first caller's context, but not
// its end: it ends after timeout, which must be positive, or when work returns.
//
// If work panics, Do panics in every caller that still waits. The value is an error
// that holds the stack of the work, and wraps the value of the panic if that is
// an error.
func (g *Group[V]) Do(ctx context.Context, key string, timeout time.Duration, work func(context.Context) (V, error)) (V, error) {
	var zero V
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	finished := g.calls.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		return run(ctx, work), nil
	})
	select {
	case <-ctx.Done():
		return zero, ctx.Err()
	case call := <-finished:
		result := call.Val.(*sharedResult[V])
		if result.panicked != nil {
			panic(result.panicked)
		}
		return result.value, result.err
	}
}

// Forget makes the next call of key start work again, even if a call is under way.
// Callers that already wait for that one still receive its result.
func (g *Group[V]) Forget(key string) { g.calls.Forget(key) }

type sharedResult[V any] struct {
	value    V
	err      error
	panicked *workPanic
}

// run calls work in a goroutine of its own, because a goroutine that Goexit ends
// can return nothing.
func run[V any](ctx context.Context, work func(context.Context) (V, error)) *sharedResult[V] {
	r := &sharedResult[V]{err: ErrGoexit}
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		defer func() {
			if value := recover(); value != nil {
				r.panicked = &workPanic{value, debug.Stack()}
			}
		}()
		r.value, r.err = work(ctx)
	}()
	<-returned
	return r
}

// workPanic carries a panic from the goroutine of the work to its callers.
type workPanic struct {
	value any
	stack []byte
}

func (p *workPanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

func (p *workPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
