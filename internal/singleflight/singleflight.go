// Package singleflight deduplicates concurrent calls with the same key. Results
// are not cached.
//
// It wraps golang.org/x/sync/singleflight for use in servers. There, a panic in a
// function passed to DoChan ends the process, runtime.Goexit in it blocks the callers
// for ever, a function that uses the context of the first caller fails for all callers
// when the first one leaves, and results have no type.
package singleflight

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/singleflight"
)

// ErrGoexit is returned to every waiting caller if the work called [runtime.Goexit].
var ErrGoexit = errors.New("singleflight: runtime.Goexit called")

// Group deduplicates calls. The zero value is ready for use. A Group must not be
// copied after its first use, and is safe for concurrent use.
type Group[V any] struct {
	calls singleflight.Group
}

// Do calls work, or waits for a concurrent call with the same key, and returns its
// result. It returns the error of ctx if ctx ends first; work continues, even if no
// caller waits for it any longer.
//
// The context of work has the values of the first caller's context, but a deadline of
// its own: it ends after timeout, which must be positive, or when work returns.
//
// If work panics, Do panics in every waiting caller. The value is an error with the
// stack of work; it wraps the value of the panic if that is an error.
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

// Forget makes the next call with the key call its work, even if a call is in progress.
// Callers that already wait for that call receive its result.
func (g *Group[V]) Forget(key string) { g.calls.Forget(key) }

type sharedResult[V any] struct {
	value    V
	err      error
	panicked *workPanic
}

// run calls work in a goroutine of its own, because a goroutine that calls Goexit cannot
// return a result.
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

// workPanic is the value with which Do panics in the callers.
type workPanic struct {
	value any
	stack []byte
}

func (p *workPanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

func (p *workPanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
