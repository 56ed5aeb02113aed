package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/go-webhookcfg/internal/singleflight"
	"example.com/go-webhookcfg/webhookcfg"
)

// readTimeout bounds a read of the store: callers share it, and none of them can end it.
const readTimeout = 20 * time.Second

var errUnwanted = errors.New("cache: no caller waits for the read")

// clientReads are the reads of one client that are in progress or wait for their turn.
type clientReads struct {
	client string
	turns  chan struct{} // holds a value for each read in progress
	latest map[string]*sharedRead
	count  int
	epoch  int // how often the client was dropped
}

// sharedRead is a read of the store for all callers that join it.
type sharedRead struct {
	of       *clientReads
	entity   string
	flight   singleflight.Group[webhookcfg.Webhook]
	users    int           // its callers, and itself while it is in progress
	unwanted chan struct{} // closed when there are none
	inStore  bool          // the store was called
	since    instant       // before the store was called or, until then, when the read was made
	epoch    int           // in which the store was called
}

// noEpoch is the epoch of a read that started while a change was made.
const noEpoch = -1

// read reads the store, or waits for another caller's read that is recent enough for a
// call of the given instant.
func (c *Cache) read(ctx context.Context, client, entity string, called instant) (webhookcfg.Webhook, error) {
	r, err := c.clients.join(client, entity, called, c.joinable)
	if err != nil {
		return webhookcfg.Webhook{}, err
	}
	defer c.clients.leave(r)
	hook, err := r.flight.Do(ctx, "", c.readTimeout, func(ctx context.Context) (webhookcfg.Webhook, error) {
		hook, err := c.fetch(ctx, r)
		if err != nil && !errors.Is(err, errUnwanted) {
			c.clients.fail(r.of.client, c.now())
		}
		return hook, err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("cache: resolve: %w", ctx.Err())
	case err != nil && c.ctx.Err() != nil:
		err = ErrClosed
	}
	return hook, err
}

// readOrHeld returns an entry within StaleIfError if the store fails or time runs out.
// After a failure a caller with an entry hardly waits: a store that hangs would cost each
// call MaxStale. Reads that fail again within MaxStale prolong this.
func (c *Cache) readOrHeld(ctx context.Context, client, entity string, called instant) (webhookcfg.Webhook, error) {
	waiting := ctx
	patience := c.maxStale / 100
	if c.clients.failing(client, called-2*c.maxStale) {
		if _, held := c.clients.lookup(client, entity, called+patience-c.staleIfError); held {
			var cancel context.CancelFunc
			waiting, cancel = context.WithTimeout(ctx, patience)
			defer cancel()
		}
	}
	hook, err := c.read(waiting, client, entity, called)
	if err == nil || ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return hook, err
	}
	if held, ok := c.clients.lookup(client, entity, c.now()-c.staleIfError); ok {
		return held, nil
	}
	return hook, err
}

// fetch waits for its turn, reads the store and keeps the result.
func (c *Cache) fetch(ctx context.Context, r *sharedRead) (hook webhookcfg.Webhook, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	for _, turns := range []chan struct{}{r.of.turns, c.turns} {
		select {
		case turns <- struct{}{}:
			defer func() { <-turns }()
		case <-r.unwanted:
			return hook, errUnwanted
		case <-ctx.Done():
			return hook, fmt.Errorf("cache: wait for a read of the store: %w", ctx.Err())
		}
	}
	if err := c.clients.start(r, c.now()); err != nil {
		return hook, err
	}
	defer c.clients.leave(r)
	c.reads.Add(1)
	hook, err = c.store.Resolve(ctx, r.of.client, r.entity)
	if err == nil {
		c.clients.keep(r, hook)
	}
	return hook, err
}

// join returns a read for a caller, which must leave it: a new one, unless there is one
// that the caller can join.
func (t *clients) join(client, entity string, called, joinable instant) (*sharedRead, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, ErrClosed
	}
	of := t.reading[client]
	if of == nil {
		of = &clientReads{
			client: strings.Clone(client), // it may be part of a buffer of the caller
			turns:  make(chan struct{}, t.turnsPerClient),
			latest: map[string]*sharedRead{},
		}
		t.reading[of.client] = of
	}
	r := of.latest[entity]
	if r == nil || r.since <= called-joinable || r.inStore && r.epoch != of.epoch {
		r = &sharedRead{of: of, entity: strings.Clone(entity), unwanted: make(chan struct{}), since: called}
		of.latest[r.entity] = r
		of.count++
		t.held.Add(1)
	}
	r.users++
	return r, nil
}

func (t *clients) leave(r *sharedRead) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.users--; r.users > 0 {
		return
	}
	close(r.unwanted)
	if r.of.latest[r.entity] == r {
		delete(r.of.latest, r.entity)
	}
	if r.of.count--; r.of.count == 0 {
		delete(t.reading, r.of.client)
	}
	t.held.Done()
}

// start records that a read is about to call the store; it must leave the read
// afterwards, unless start returns an error.
func (t *clients) start(r *sharedRead, now instant) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return ErrClosed
	}
	if r.users == 0 {
		return errUnwanted
	}
	r.users++
	r.inStore, r.since, r.epoch = true, now, r.of.epoch
	if t.changing[r.of.client] > 0 {
		r.epoch = noEpoch
	}
	return nil
}

// keep keeps the result of a read, unless the client was dropped since the read started.
func (t *clients) keep(r *sharedRead, hook webhookcfg.Webhook) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if r.epoch == r.of.epoch {
		t.put(r.of.client, r.entity, cachedWebhook{hook, r.since})
	}
}
