// Package singleflight lets concurrent calls with the same key share one result. It doesn't
// cache results.
//
// It wraps golang.org/x/sync/singleflight, which you can't use in a server as it is. There, a
// panic in a function that you pass to DoChan ends the process, and runtime.Goexit in it
// blocks the callers for ever. If the function uses the first caller's context, it fails for
// all callers when the first one leaves. And results have no type.
package singleflight

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sync/singleflight"
)

// ErrGoexit means that the work called [runtime.Goexit].
var ErrGoexit = errors.New("singleflight: runtime.Goexit called")

// Group deduplicates calls. You can use its zero value, and call it concurrently. Don't copy
// it after its first use.
type Group[V any] struct {
	calls singleflight.Group
}

// Do calls work and returns its result. If a call with the same key is running, Do waits for
// that one's result instead. If ctx ends first, Do returns its error. The work goes on, even
// if no caller waits for it any more.
//
// The context of work has the values of the first caller's context, but ends after timeout,
// or when work returns. The timeout must be positive.
//
// If work panics, or returns the [*PanicError] of a nested call, Do panics with that error in
// every waiting caller.
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

// Call calls work in another goroutine and returns its result. If work panics, the error is a
// [*PanicError], and if it calls [runtime.Goexit], the error is ErrGoexit. Use it for a
// host's functions that another library calls in its own goroutines, where a panic would end
// the process.
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

// Error returns the value of the panic and the stack.
func (p *PanicError) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

// Stack returns the stack of the panic.
func (p *PanicError) Stack() []byte { return p.stack }

// Unwrap returns the value of the panic, if it's an error.
func (p *PanicError) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
