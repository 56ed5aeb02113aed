package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
)

// cutShort tries every kind of change with a context that ends when the store
// looks at it for the first time, the second time, and so on.
func cutShort(ctx context.Context, e Env) error {
	const most = 64
	var all []*rehearsal
	for kind := range changeKinds {
		for look := 1; look <= most; look++ {
			r, err := rehearse(ctx, e.Store, fmt.Sprintf("cut-%d-%d", kind, look))
			if err != nil {
				return err
			}
			all = append(all, r)
			over := endAtLook(ctx, look)
			c := r.change(kind)
			err = e.Store.Apply(over, c)
			over.cancel()
			if err := r.settle(c, r.outcomes(c, err)...); err != nil {
				return fmt.Errorf("the context ended at look %d: %w", look, err)
			}
			if over.left.Load() > 0 {
				break
			}
		}
	}
	return compareAgain(all)
}

// compareAgain finds changes that were made after all.
func compareAgain(all []*rehearsal) error {
	for _, r := range all {
		if err := r.compare(); err != nil {
			return fmt.Errorf("a while after a change was cut short: %w", err)
		}
	}
	return nil
}

// burstCutShort ends the context that many changes share while they are made.
func burstCutShort(ctx context.Context, e Env) error {
	const writers, each, enough = 8, 10, 20
	shared, cancel := context.WithCancel(ctx)
	defer cancel()
	var made atomic.Int64
	all := make([]*rehearsal, writers)
	err := together(writers, func(n int) (err error) {
		r, err := rehearse(ctx, e.Store, fmt.Sprintf("burst-%d", n))
		if err != nil {
			return err
		}
		all[n] = r
		for step := range each {
			c := r.change(step % changeKinds)
			err := e.Store.Apply(shared, c)
			if made.Add(1) == enough {
				cancel()
			}
			if err != nil {
				return r.settle(c, r.outcomes(c, err)...)
			}
			r.state = r.state.after(c)
			if err := r.compare(); err != nil {
				return fmt.Errorf("after %s: %w", describeChange(c), err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return compareAgain(all)
}

// lookContext is a context that ends when it is looked at for the nth time.
type lookContext struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

func endAtLook(ctx context.Context, n int) *lookContext {
	inner, cancel := context.WithCancel(ctx)
	c := &lookContext{Context: inner, cancel: cancel}
	c.left.Store(int64(n))
	return c
}

// Err implements [context.Context].
func (c *lookContext) Err() error {
	c.look()
	return c.Context.Err()
}

// Done implements [context.Context].
func (c *lookContext) Done() <-chan struct{} {
	c.look()
	return c.Context.Done()
}

func (c *lookContext) look() {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
}
