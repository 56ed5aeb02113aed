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

// ErrGoexit is returned if the work called [runtime.Goexit].
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
// If work panics, or returns the [*PanicError] of a nested call, Do panics with that
// error in every waiting caller.
func (g *Group[V]) Do(ctx context.Context, key string, timeout time.Duration, work func(context.Context) (V, error)) (V, error) {
	var zero V
	if err := ctx.Err(); err != nil {
		return zero, err
	}
	finished := g.calls.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
		defer cancel()
		value, err := Call(func() (V, error) { return work(ctx) })
		return &sharedResult[V]{value, err}, nil
	})
	select {
	case <-ctx.Done():
		return zero, ctx.Err()
	case call := <-finished:
		result := call.Val.(*sharedResult[V])
		if panicked, ok := errors.AsType[*PanicError](result.err); ok {
			panic(panicked)
		}
		return result.value, result.err
	}
}

type sharedResult[V any] struct {
	value V
	err   error
}

// Call calls work in a goroutine of its own, waits for it, and returns its result, a
// [*PanicError] if it panicked, or ErrGoexit. It is for functions of a host that another
// library calls in its goroutines, where a panic would end the process.
func Call[V any](work func() (V, error)) (value V, err error) {
	err = ErrGoexit
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		defer func() {
			if panicked := recover(); panicked != nil {
				err = &PanicError{panicked, debug.Stack()}
			}
		}()
		value, err = work()
	}()
	<-returned
	return value, err
}

// PanicError is a panic of the work.
type PanicError struct {
	value any
	stack []byte
}

// Error returns the value of the panic, and the stack.
func (p *PanicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// Stack returns the stack of the panic.
func (p *PanicError) Stack() []byte { return p.stack }

// Unwrap returns the value of the panic if that is an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
