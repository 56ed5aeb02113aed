// Package interrupt ends contexts in the middle of a call, so that you can test what the call
// leaves behind.
package interrupt

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Context is a context that ends at the nth call of Err or Done.
type Context struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

// At returns a context that ends at its nth call. Call Cancel when you're done with it.
func At(ctx context.Context, n int) *Context {
	inner, cancel := context.WithCancel(ctx)
	c := &Context{Context: inner, cancel: cancel}
	c.left.Store(int64(n))
	return c
}

// Cancel ends the context. It doesn't change what Ended reports.
func (c *Context) Cancel() { c.cancel() }

// Ended reports whether the context has ended because of its calls.
func (c *Context) Ended() bool { return c.left.Load() <= 0 }

// Err implements [context.Context].
func (c *Context) Err() error {
	c.count()
	return c.Context.Err()
}

// Done implements [context.Context].
func (c *Context) Done() <-chan struct{} {
	c.count()
	return c.Context.Done()
}

func (c *Context) count() {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
}

// Most is how often [Each] interrupts a call at most.
const Most = 64

// Each makes a call up to Most times. It ends the call's context a little later each time,
// until the call returns before that. Each stops at the first error and returns it.
func Each(ctx context.Context, call func(over context.Context) error) error {
	for n := 1; n <= Most; n++ {
		over := At(ctx, n)
		err := call(over)
		over.Cancel()
		if err != nil {
			return fmt.Errorf("ctx ended at call %d of its methods Err and Done: %w", n, err)
		}
		if !over.Ended() {
			break
		}
	}
	return nil
}
