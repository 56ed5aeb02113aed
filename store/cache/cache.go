package cache

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
)

// Options configures a [Cache]. The zero value is safe, as is a nil pointer.
type Options struct {
	// MaxStale bounds the staleness of a result: it is one that the store could have
	// returned less than MaxStale before Resolve was called, or later. Zero means
	// 2 seconds; the minimum is 10 ms.
	MaxStale time.Duration

	// PollEvery is the interval at which the store is polled for changes. Zero means a
	// quarter of MaxStale, which leaves room for a slow response. It must be less than
	// MaxStale and at least 1 ms. A [Notifier] triggers polls earlier, at most ten times
	// as often. A poll times out after half of MaxStale.
	PollEvery time.Duration

	// StaleIfError keeps you sending while the store is down: if a read fails, entries up to
	// StaleIfError old are returned (RFC 5861, Section 4). A read fails too if it takes longer
	// than MaxStale, or the deadline of the caller's context passes. A canceled context always
	// gives an error. It must exceed MaxStale. For twice MaxStale after a failed read, callers
	// with an entry wait only a hundredth of MaxStale. Zero means that Resolve returns the error.
	StaleIfError time.Duration

	// MaxReads is the maximum number of concurrent reads of the store, of which those of
	// one client take at most half, rounded up. Others wait for their turn. Zero means 8.
	// Neither polls nor changes count: with a pool of more connections than MaxReads,
	// reads do not keep them waiting.
	MaxReads int

	// MaxEntries is the maximum number of entries, of all clients together. Zero means
	// 131,072, which take about 35 MB, or 120 MB if each is of another client. When the
	// cache is full, an entry of the client with the most entries is evicted.
	MaxEntries int

	// Logger receives a record when polls start to fail and when they succeed again. No
	// record contains a URL. If nil, nothing is logged.
	Logger *slog.Logger
}

const (
	defaultMaxStale   = 2 * time.Second
	defaultMaxEntries = 1 << 17
	defaultMaxReads   = 8

	minMaxStale  = 10 * time.Millisecond
	minPollEvery = time.Millisecond
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
	store    webhookcfg.Store
	notifier Notifier // nil if there is none
	logger   *slog.Logger

	maxStale     time.Duration
	pollEvery    time.Duration
	staleIfError time.Duration
	readTimeout  time.Duration
	joinable     time.Duration // the age up to which a read can be joined

	zero     time.Time    // when instant 0 was
	lastPoll atomic.Int64 // the instant at which the last successful poll started
	reads    atomic.Uint64
	clients  *clients
	turns    chan struct{} // holds a value for each read in progress

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	polling sync.WaitGroup
}

// New returns an empty cache of st, and starts to poll it if it is a Feed or a Versioner.
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
	maxReads := cmp.Or(o.MaxReads, defaultMaxReads)
	c := &Cache{
		store:        st,
		logger:       cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		maxStale:     o.maxStale(),
		pollEvery:    o.pollEvery(),
		staleIfError: o.StaleIfError,
		readTimeout:  o.readTimeout(),
		// Every bound has passed since instant 0, which stands for never.
		zero:    time.Now().Add(-max(o.maxStale(), o.StaleIfError)),
		clients: newClients(cmp.Or(o.MaxEntries, defaultMaxEntries), (maxReads+1)/2),
		turns:   make(chan struct{}, maxReads),
	}
	// No caller joins a read whose result would be too old, or that is about to fail.
	c.joinable = min(c.maxStale, c.readTimeout/2)
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.notifier, _ = st.(Notifier)
	if polls := c.pollsOf(st); len(polls) > 0 {
		c.polling.Go(func() { c.follow(polls) })
	}
	return c, nil
}

func (o *Options) maxStale() time.Duration  { return cmp.Or(o.MaxStale, defaultMaxStale) }
func (o *Options) pollEvery() time.Duration { return cmp.Or(o.PollEvery, o.maxStale()/4) }

// readTimeout is the time limit of a read. With StaleIfError, an older webhook is better
// than a longer wait.
func (o *Options) readTimeout() time.Duration {
	if o.StaleIfError > 0 {
		return o.maxStale()
	}
	return readTimeout
}

func (o *Options) check() error {
	switch {
	case o.MaxStale < 0 || o.PollEvery < 0 || o.StaleIfError < 0 || o.MaxReads < 0 || o.MaxEntries < 0:
		return errors.New("cache: negative option")
	case o.maxStale() < minMaxStale:
		return fmt.Errorf("cache: MaxStale %v below the minimum of %v", o.maxStale(), minMaxStale)
	case o.pollEvery() < minPollEvery:
		return fmt.Errorf("cache: PollEvery %v below the minimum of %v", o.pollEvery(), minPollEvery)
	case o.pollEvery() >= o.maxStale():
		return fmt.Errorf("cache: PollEvery %v not less than MaxStale %v", o.pollEvery(), o.maxStale())
	case o.StaleIfError > 0 && o.StaleIfError <= o.maxStale():
		return fmt.Errorf("cache: StaleIfError %v not greater than MaxStale %v", o.StaleIfError, o.maxStale())
	}
	return nil
}

// Resolve returns the webhook in effect for an entity, as specified by
// [webhookcfg.Store], but possibly stale within the bound. A hit does not allocate.
//
// On a miss, concurrent callers for one entity share one read of the store. It takes at
// most 20 seconds, with StaleIfError at most MaxStale, including the wait for its turn;
// once no caller waits any longer, it does not get one. Its context has the values of
// the first caller's context. A panic of the store is raised again in every caller that
// waits.
func (c *Cache) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if err := ctx.Err(); err != nil {
		return webhookcfg.Webhook{}, fmt.Errorf("cache: resolve: %w", err)
	}
	now := c.now()
	if hook, ok := c.clients.lookup(client, entity, now-c.maxStale); ok {
		return hook, nil
	}
	if c.staleIfError > 0 {
		return c.readOrHeld(ctx, client, entity, now)
	}
	return c.read(ctx, client, entity, now)
}

// Store returns the cache as a [webhookcfg.Store], for the handler of a process that
// also sends. It complies with all clauses of webhookcfg.Store for changes that are made
// through it: they are visible to every Resolve that starts after Apply returned
// nil. A change made elsewhere, or one for which Apply returned an error, becomes
// visible within the bound. The Store is a [webhookcfg.Lister] exactly if the store
// behind it is. Lists are not cached. Package admin lists clients and erases them through it,
// if the store behind it supports that.
func (c *Cache) Store() webhookcfg.Store {
	s := cachedStore{Cache: c}
	s.clientLister, _ = c.store.(admin.ClientLister)
	s.eraser, _ = c.store.(admin.Eraser)
	if lister, ok := c.store.(webhookcfg.Lister); ok {
		return listingStore{s, lister}
	}
	return s
}

// cachedStore adds Apply to a Cache. Cache itself has none, because a handler would accept
// it as a store that cannot list.
type cachedStore struct {
	*Cache
	clientLister admin.ClientLister // nil if the store is none, as is eraser
	eraser       admin.Eraser
}

// Apply implements [webhookcfg.Store]. While it runs, nothing about the client is kept
// or shared: some callers would see the change, and later ones would not.
func (s cachedStore) Apply(ctx context.Context, change webhookcfg.Change) error {
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	s.clients.startChange(change.Client)
	defer s.clients.endChange(change.Client)
	return s.store.Apply(ctx, change)
}

// ListClients implements [admin.ClientLister] if the store behind the cache does.
func (s cachedStore) ListClients(ctx context.Context, cursor string, limit int) (admin.ClientPage, error) {
	if s.ctx.Err() != nil {
		return admin.ClientPage{}, ErrClosed
	}
	if s.clientLister == nil {
		return admin.ClientPage{}, fmt.Errorf("cache: list of clients: %w", errors.ErrUnsupported)
	}
	return s.clientLister.ListClients(ctx, cursor, limit)
}

// Erase implements [admin.Eraser] if the store behind the cache does.
func (s cachedStore) Erase(ctx context.Context, client string) error {
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	if s.eraser == nil {
		return fmt.Errorf("cache: erase: %w", errors.ErrUnsupported)
	}
	return s.eraser.Erase(ctx, client)
}

type listingStore struct {
	cachedStore
	lister webhookcfg.Lister
}

// List implements [webhookcfg.Lister].
func (s listingStore) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	if s.ctx.Err() != nil {
		return webhookcfg.Page{}, ErrClosed
	}
	return s.lister.List(ctx, client, after, limit)
}

// Close stops polling, cancels the reads in progress and waits for both. Callers that
// wait for a read get [ErrClosed], as do all later calls. Close does not close the store.
func (c *Cache) Close() error {
	c.stop()
	c.clients.close()
	c.polling.Wait()
	return nil
}

// Stats are figures about a [Cache].
type Stats struct {
	// Entries is the number of entries.
	Entries int
	// Reads is the number of reads of the store since New.
	Reads uint64
	// Age is the time since the last successful poll started; -1 before the first. While
	// it exceeds MaxStale, an entry is valid only for MaxStale after it was read.
	Age time.Duration
}

// Stats returns the current figures.
func (c *Cache) Stats() Stats {
	stats := Stats{Entries: c.clients.count(), Reads: c.reads.Load(), Age: -1}
	if polled := instant(c.lastPoll.Load()); polled > 0 {
		stats.Age = c.now() - polled
	}
	return stats
}

func (c *Cache) now() instant { return time.Since(c.zero) }
