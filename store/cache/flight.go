package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// flight is a read of the store that somebody waits for.
type flight struct {
	// of is where the answer will be kept, if it is in effect then.
	of     *copied
	entity string
	// began is before the store is asked.
	began   moment
	waiting int
	cancel  context.CancelFunc

	done  chan struct{} // closed once what follows is set
	hook  webhookcfg.Webhook
	err   error
	panic *storePanic
}

var errNoReturn = errors.New("cache: the store ended its goroutine")

// read asks the store, or waits for somebody who does.
func (c *Cache) read(ctx context.Context, client, entity string, came moment) (webhookcfg.Webhook, error) {
	f, err := c.join(ctx, client, entity, came)
	if err != nil {
		return webhookcfg.Webhook{}, err
	}
	if f == nil {
		c.reads.Add(1)
		return c.store.Resolve(ctx, client, entity)
	}
	defer c.leave(f)
	select {
	case <-f.done:
	case <-ctx.Done():
		return webhookcfg.Webhook{}, fmt.Errorf("cache: resolve: %w", ctx.Err())
	}
	if f.panic != nil {
		panic(f.panic)
	}
	if f.err != nil && c.ctx.Err() != nil {
		return webhookcfg.Webhook{}, ErrClosed
	}
	return f.hook, f.err
}

// join returns a flight whose answer is within the bound for who came at the given
// moment; nil if the client is being changed through c.
func (c *Cache) join(ctx context.Context, client, entity string, came moment) (*flight, error) {
	t := c.copies
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	if t.changing[client] > 0 {
		return nil, nil
	}
	var f *flight
	if of := t.clients[client]; of != nil {
		f = of.flights[entity]
	}
	if f == nil || f.began <= came-moment(c.maxStale) {
		f = c.launch(ctx, t.know(strings.Clone(client)), strings.Clone(entity))
	}
	f.waiting++
	return f, nil
}

// launch begins a flight, and has it joined instead of an older one.
func (c *Cache) launch(ctx context.Context, of *copied, entity string) *flight {
	ctx, cancel := c.flightContext(ctx)
	f := &flight{of: of, entity: entity, began: c.now(), cancel: cancel, done: make(chan struct{}), err: errNoReturn}
	of.flights[entity] = f
	c.reads.Add(1)
	c.running.Go(func() { c.fly(ctx, f) })
	return f
}

// flightContext returns a context with the values of the first caller's, that ends with
// Close and, where an older answer may do, after a time.
func (c *Cache) flightContext(caller context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(caller))
	stopWatching := context.AfterFunc(c.ctx, cancel)
	stopTimer := func() bool { return false }
	if c.staleIfError > 0 {
		stopTimer = time.AfterFunc(c.maxStale, cancel).Stop
	}
	return ctx, func() {
		stopWatching()
		stopTimer()
		cancel()
	}
}

func (c *Cache) fly(ctx context.Context, f *flight) {
	defer f.cancel()
	defer close(f.done)
	defer c.land(f)
	defer func() {
		if value := recover(); value != nil {
			f.panic = &storePanic{value, debug.Stack()}
		}
	}()
	f.hook, f.err = c.store.Resolve(ctx, f.of.client, f.entity)
}

// land keeps the answer if the flight can still be joined: its client may have
// changed since it began, or a later flight may have taken its place.
func (c *Cache) land(f *flight) {
	t := c.copies
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.unlink() && t.inEffect(f.of) && f.err == nil {
		t.keep(f, f.hook)
	}
	t.tidy(f.of)
}

// leave ends a flight for which nobody waits any more.
func (c *Cache) leave(f *flight) {
	t := c.copies
	t.mu.Lock()
	defer t.mu.Unlock()
	f.waiting--
	if f.waiting == 0 {
		f.unlink()
		f.cancel()
		t.tidy(f.of)
	}
}

// unlink sees to it that nobody joins the flight any more, and reports whether
// somebody could. It wants copies.mu held.
func (f *flight) unlink() bool {
	linked := f.of.flights[f.entity] == f
	if linked {
		delete(f.of.flights, f.entity)
	}
	return linked
}

// storePanic takes a panic of the store to those who wait for it.
type storePanic struct {
	value any
	stack []byte
}

func (p *storePanic) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

func (p *storePanic) Unwrap() error {
	err, _ := p.value.(error)
	return err
}
