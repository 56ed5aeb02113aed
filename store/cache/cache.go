package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"example.com/go-webhookcfg/webhookcfg"
)

// ErrClosed is returned by every call after Close.
var ErrClosed = errors.New("cache: closed")

// Cache is a sender's local copy of a store, with bounded staleness: see
// [Options.MaxStale]. A hit allocates nothing and costs less than twice as much as a
// lookup in the store in memory. Time is measured on the monotonic clock, which some
// systems stop while they sleep.
//
// How the copy stays fresh depends on the store. A [Feed], or else a [Versioner], is
// polled for changes, and an entry is valid until it changes. Without either, or if the
// store supports neither, an entry is valid for MaxStale after it was read; so it is while
// polls fail.
//
// Senders call Resolve. The handler of the same process, if there is one, uses
// [Cache.Store].
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

// New returns an empty cache of st, and starts to poll it if it is a Feed or a Versioner.
// If it is a [webhookcfg.Lister], the cache holds clients with up to 256 overrides whole.
// The caller must close the cache, and st after it.
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
		// Every bound has passed since instant 0, which stands for never.
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
		// No caller joins a read whose result would be too old, or that is about to fail.
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
		every:    o.pollEvery(),
		logger:   cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		stopped:  make(chan struct{}),
		ended:    make(chan struct{}),
	}
	c.poller.notifier, _ = st.(Notifier)
	c.polling.Go(func() { c.poller.run(c.ctx, c.poller.pollsOf(st)) })
	return c, nil
}

// Resolve returns the webhook in effect for an entity, as specified by
// [webhookcfg.Store], but possibly stale within the bound. A hit does not allocate.
//
// On a miss, concurrent callers for one client share one read of its page. If the client is
// too large, or changed a moment ago, callers for one entity share one read of that. A read
// takes at most 20 seconds, with StaleIfError at most MaxStale, including the wait for its
// turn; once no caller waits any longer, it does not get one. Its context has the values
// of the first caller's context. A panic of the store is raised again in every caller
// that waits.
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

// read reads the client's page or, where that is no use, the entity.
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

// readOrHeld returns an entry within StaleIfError if the store fails or time runs out.
// After a failure a caller with an entry hardly waits: a store that hangs would cost each
// call MaxStale. Reads that fail again within MaxStale prolong this.
func (c *Cache) readOrHeld(ctx context.Context, client, entity string, called instant) (webhookcfg.Webhook, error) {
	waiting := ctx
	patience := c.maxStale / 100
	if c.entries.failing(client, called-2*c.maxStale) {
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

// Warm reads clients ahead, so that their entities are hits. Call it once before you start
// your senders, with all clients: it first waits for up to two polls, which vouch for what
// it reads. It makes up to half of [Options.MaxReads] reads at a time, and returns when all
// succeeded or one failed. Clients that are too large are not held whole, and
// [Options.MaxBytes] still applies.
//
// If the store is not a [webhookcfg.Lister], the error wraps [errors.ErrUnsupported].
func (c *Cache) Warm(ctx context.Context, clients []string) error {
	if c.reads.lister == nil {
		return fmt.Errorf("cache: warm: the store has no pages: %w", errors.ErrUnsupported)
	}
	for _, client := range clients {
		c.entries.expect(client)
	}
	if err := c.poller.awaitPoll(ctx); err != nil {
		return fmt.Errorf("cache: warm: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit((cap(c.reads.turns) + 1) / 2)
	for _, client := range clients {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			return recoverPanic(ctx, func(ctx context.Context) error {
				_, err := c.reads.do(ctx, key{client, ""}, c.clock.now())
				return err
			})
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("cache: warm: %w", err)
	}
	return nil
}

// Close stops polling, cancels the reads in progress and waits for both. Callers that
// wait for a read get [ErrClosed], as do all later calls. Close does not close the store.
func (c *Cache) Close() error {
	c.stop()
	c.reads.close()
	c.polling.Wait()
	return nil
}

// instant is a time on the monotonic clock: the time since a clock's zero. Zero stands
// for never.
type instant = time.Duration

// clock measures time from zero.
type clock struct{ zero time.Time }

func (c clock) now() instant { return time.Since(c.zero) }
