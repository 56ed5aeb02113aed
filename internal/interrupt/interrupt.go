// Package interrupt ends contexts while a call uses them, for tests of what the call leaves.
package interrupt

import (
	"context"
	"fmt"
	"sync/atomic"
)

// Context is a context that ends when Err or Done is called for the nth time.
type Context struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

// At returns a context that ends at its nth call. Call Cancel to release it.
func At(ctx context.Context, n int) *Context {
	inner, cancel := context.WithCancel(ctx)
	c := &Context{Context: inner, cancel: cancel}
	c.left.Store(int64(n))
	return c
}

// Cancel ends the context, whether or not Ended reports it.
func (c *Context) Cancel() { c.cancel() }

// Ended reports whether there were as many calls as end the context.
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

// Most is the largest number of interruptions of one call.
const Most = 64

// Each makes a call up to Most times. Its context ends each time at a later moment, until the
// call returns before that. Each returns the first error.
func Each(ctx context.Context, call func(over context.Context) error) error {
	for n := 1; n <= Most; n++ {
		over := At(ctx, n)
		err := call(over)
		over.Cancel()
		if err != nil {
			return fmt.Errorf("context ended at its call %d: %w", n, err)
		}
		if !over.Ended() {
			break
		}
	}
	return nil
}
