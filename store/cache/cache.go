package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// ErrClosed is the error of every call after Close.
var ErrClosed = errors.New("cache: closed")

// Cache is a sender's copy of a store. Call Resolve before you send, and Close when you're
// done. A result can be stale by up to [Options.MaxStale].
//
// A Cache polls a [Feed], or else a [Versioner], and an entry stays valid until it changes.
// If the store is neither, or while polls fail, an entry is valid for MaxStale after it was
// read.
//
// A hit doesn't allocate, and takes less than twice as long as a lookup in the store in
// memory. The Cache measures time on the monotonic clock, which stops on some systems while
// they sleep.
//
// A Cache is safe for concurrent use.
type Cache struct {
	maxStale     time.Duration
	staleIfError time.Duration

	clock   clock
	figures figures
	entries *entries
	reads   *reads
	poller  *poller

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	polling sync.WaitGroup
}

// New returns an empty cache of a store, and starts to poll the store if it's a [Feed] or a
// [Versioner]. Close the cache when you're done, and the store after it. If the store is a
// [webhookcfg.Lister], the cache holds clients with up to 256 overrides as a whole.
func New(st webhookcfg.Store, o *Options) (*Cache, error) {
	if o == nil {
		o = new(Options)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if st == nil {
		return nil, errors.New("cache: no store")
	}
	c := &Cache{
		maxStale:     o.maxStale(),
		staleIfError: o.StaleIfError,
		// At instant 0, which means "never", every bound has passed already.
		clock:   clock{time.Now().Add(-max(o.maxStale(), o.StaleIfError))},
		entries: newEntries(o.maxBytes(), o.maxStale()),
	}
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.reads = &reads{
		store:   st,
		entries: c.entries,
		figures: &c.figures,
		clock:   c.clock,
		timeout: o.readTimeout(),
		// Nobody joins a read whose result would be too old, or that's about to time out.
		joinable: min(o.maxStale(), o.readTimeout()/2),
		turns:    make(chan struct{}, o.maxReads()),
		ctx:      c.ctx,
		byClient: map[string]*clientReads{},
		changing: map[string]int{},
	}
	c.reads.lister, _ = st.(webhookcfg.Lister)
	c.poller = &poller{
		reads:    c.reads,
		figures:  &c.figures,
		clock:    c.clock,
		maxStale: o.maxStale(),
		every:    o.pollInterval(),
		logger:   cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		wanted:   make(chan struct{}, 1),
		stopped:  make(chan struct{}),
		ended:    make(chan struct{}),
	}
	c.poller.notifier, _ = st.(Notifier)
	c.polling.Go(func() { c.poller.run(c.ctx, c.poller.pollsOf(st)) })
	return c, nil
}

// Resolve returns the webhook in effect for an entity, as [webhookcfg.Store] says, but it can
// be stale by up to [Options.MaxStale], or [Options.StaleIfError] if you set that and the
// store fails. A hit doesn't allocate.
//
// If the cache has no entry, concurrent callers for one client share a read of its page. For
// a client that's too large, or has just changed, concurrent callers for one entity share a
// read of the entity. A read takes at most 20 seconds, or MaxStale if you set StaleIfError,
// including the wait for its turn. If all its callers leave before its turn, it isn't made. Its
// context has the values of the first caller's context. If the store panics, every waiting
// caller panics.
func (c *Cache) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if client == "" || entity == "" {
		return webhookcfg.Webhook{}, fmt.Errorf("%w: resolve without a client or an entity", webhookcfg.ErrInvalidArgument)
	}
	if err := ctx.Err(); err != nil {
		return webhookcfg.Webhook{}, fmt.Errorf("cache: resolve: %w", err)
	}
	now := c.clock.now()
	if e := c.entries.lookup(client, entity, now, now-c.maxStale); e != nil {
		c.figures.hits.Add(1)
		return e.resolve(entity), nil
	}
	c.figures.misses.Add(1)
	if c.staleIfError > 0 {
		return c.readOrHeld(ctx, client, entity, now)
	}
	return c.read(ctx, client, entity, now)
}

// read reads the client's page, or only the entity if a page isn't worth it.
func (c *Cache) read(ctx context.Context, client, entity string, called instant) (webhookcfg.Webhook, error) {
	var e *entry
	var err error
	if c.reads.lister != nil && c.entries.needsPage(client) {
		e, err = c.reads.do(ctx, key{client, ""}, called)
	}
	if e == nil && err == nil {
		e, err = c.reads.do(ctx, key{client, entity}, called)
	}
	if err != nil {
		return webhookcfg.Webhook{}, err
	}
	return e.resolve(entity), nil
}

// readOrHeld returns an entry within StaleIfError if the store fails or time runs out. After
// a failure, or while polls hang, a caller with an entry hardly waits, because a store that
// hangs would cost each call MaxStale. Every further failure prolongs this.
func (c *Cache) readOrHeld(ctx context.Context, client, entity string, called instant) (webhookcfg.Webhook, error) {
	waiting := ctx
	patience := c.maxStale / 100
	if c.poller.hanging.Load() || c.entries.failing(client, called-2*c.maxStale) {
		if c.entries.lookup(client, entity, called, called+patience-c.staleIfError) != nil {
			var cancel context.CancelFunc
			waiting, cancel = context.WithTimeout(ctx, patience)
			defer cancel()
		}
	}
	hook, err := c.read(waiting, client, entity, called)
	if err == nil || ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return hook, err
	}
	now := c.clock.now()
	if held := c.entries.lookup(client, entity, now, now-c.staleIfError); held != nil {
		return held.resolve(entity), nil
	}
	return hook, err
}

// Close stops polling, cancels the reads in progress, and waits until they've ended. Callers
// that wait for a read get [ErrClosed], and so do all later calls. Close doesn't close the
// store.
func (c *Cache) Close() error {
	c.stop()
	c.reads.close()
	c.polling.Wait()
	return nil
}

// instant is a time on the monotonic clock: the time since the clock's zero. Zero means
// "never".
type instant = time.Duration

// clock measures time from zero.
type clock struct{ zero time.Time }

func (c clock) now() instant { return time.Since(c.zero) }
