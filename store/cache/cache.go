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

	"example.com/go-webhookcfg/webhookcfg"
)

// Options are the settings of a [Cache]. Nil, like the zero value, is safe.
type Options struct {
	// MaxStale bounds how long a change made elsewhere may go unseen: an answer is
	// one that the store could have given less than MaxStale before Resolve was
	// called, or later. Zero means 2 seconds; the least is 10 ms.
	MaxStale time.Duration

	// PollEvery is how often the store is asked what changed; zero means a quarter of
	// MaxStale, which leaves room for a slow answer. It must be shorter than MaxStale, and
	// 1 ms at least. A [Notifier] has the store asked earlier, though not more
	// than ten times as often. Each question has half of MaxStale to be answered in.
	PollEvery time.Duration

	// StaleIfError, if more than zero, is the bound in place of MaxStale, and longer,
	// for as long as the store fails, or takes longer than MaxStale to answer: better an
	// old URL than none. Zero means that Resolve returns the store's error.
	StaleIfError time.Duration

	// MaxEntries is the maximum number of entries, of all clients together; zero means
	// 131,072, which take about 35 MB. When the copy is full, an entry of the client
	// with the most entries is evicted.
	MaxEntries int

	// Logger is told when polls begin to fail and when they succeed again. It is
	// told no URLs. Nil is silent.
	Logger *slog.Logger
}

const (
	defaultMaxStale   = 2 * time.Second
	defaultMaxEntries = 1 << 17

	minMaxStale  = 10 * time.Millisecond
	minPollEvery = time.Millisecond
)

// ErrClosed is the answer to every call after Close.
var ErrClosed = errors.New("cache: closed")

// Cache is a sender's local copy of what a store says. A hit costs about what
// Memory.Resolve costs, and how far it may be behind is bounded: see
// [Options.MaxStale]. The bound holds in the time of the monotonic clock,
// which stands still while some systems sleep.
//
// What keeps the copy fresh depends on the store. One that is a [Feed], or
// else a [Versioner], is asked at intervals what changed, and an answer is
// kept until it changes. One that is neither is asked again for every answer that is
// older than MaxStale, as is every store while those polls fail.
//
// Senders call Resolve. A handler in the same process is given [Cache.Store].
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

	ctx     context.Context // ends with Close
	stop    context.CancelFunc
	polling sync.WaitGroup
}

// New returns a local copy of st, empty at first. It looks once whether st is
// a Feed, a Versioner or a Notifier. The store stays the caller's, to be closed after
// the copy.
func New(st webhookcfg.Store, o *Options) (*Cache, error) {
	if o == nil {
		o = new(Options)
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if st == nil {
		return nil, errors.New("cache: no store to copy")
	}
	c := &Cache{
		store:        st,
		logger:       cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		maxStale:     o.maxStale(),
		pollEvery:    o.pollEvery(),
		staleIfError: o.StaleIfError,
		readTimeout:  o.readTimeout(),
		// Every bound is over at instant 0, which stands for never.
		zero:    time.Now().Add(-max(o.maxStale(), o.StaleIfError)),
		clients: newClients(cmp.Or(o.MaxEntries, defaultMaxEntries)),
	}
	// No caller joins a read whose result would be too old, or that is about to fail.
	c.joinable = min(c.maxStale, c.readTimeout/2)
	c.ctx, c.stop = context.WithCancel(context.Background())
	c.notifier, _ = st.(Notifier)
	if poll := c.pollOf(st); poll != nil {
		c.polling.Go(func() { c.follow(poll) })
	}
	return c, nil
}

func (o *Options) maxStale() time.Duration  { return cmp.Or(o.MaxStale, defaultMaxStale) }
func (o *Options) pollEvery() time.Duration { return cmp.Or(o.PollEvery, o.maxStale()/4) }

// readTimeout is how long a read may take: with StaleIfError, an older webhook is better
// than a longer wait.
func (o *Options) readTimeout() time.Duration {
	if o.StaleIfError > 0 {
		return o.maxStale()
	}
	return readTimeout
}

func (o *Options) check() error {
	switch {
	case o.MaxStale < 0 || o.PollEvery < 0 || o.StaleIfError < 0 || o.MaxEntries < 0:
		return errors.New("cache: an option of a copy is negative")
	case o.maxStale() < minMaxStale || o.pollEvery() < minPollEvery:
		return fmt.Errorf("cache: a bound of %v or polls every %v are too much work", o.maxStale(), o.pollEvery())
	case o.pollEvery() >= o.maxStale():
		return fmt.Errorf("cache: polls every %v cannot keep a copy fresh for %v", o.pollEvery(), o.maxStale())
	case o.StaleIfError > 0 && o.StaleIfError <= o.maxStale():
		return fmt.Errorf("cache: StaleIfError, %v, is not longer than MaxStale, %v", o.StaleIfError, o.maxStale())
	}
	return nil
}

// Resolve returns which webhook is in effect for an entity, as [webhookcfg.Store]
// specifies, except that it may be behind by the bound. A hit does not allocate. Otherwise concurrent
// callers of one entity share one read of the store. It ends after 20 seconds at the
// latest, with StaleIfError after MaxStale. If the store panics, so does Resolve in
// every caller that waits.
func (c *Cache) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if err := ctx.Err(); err != nil {
		return webhookcfg.Webhook{}, fmt.Errorf("cache: resolve: %w", err)
	}
	now := c.now()
	if hook, ok := c.clients.lookup(client, entity, now-c.maxStale); ok {
		return hook, nil
	}
	hook, err := c.read(ctx, client, entity, now)
	if err != nil && ctx.Err() == nil && c.staleIfError > 0 {
		if hook, ok := c.clients.lookup(client, entity, c.now()-c.staleIfError); ok {
			return hook, nil
		}
	}
	return hook, err
}

// Store returns the copy as a [webhookcfg.Store], to be given to the handler of the
// process that sends: a change made through it is visible to every Resolve that
// starts after Apply returned nil, and all clauses of webhookcfg.Store hold for what
// goes through it. A change for which Apply returned an error becomes visible within
// the bound. The value is a [webhookcfg.Lister] exactly if the store is; lists are
// not cached.
func (c *Cache) Store() webhookcfg.Store {
	if lister, ok := c.store.(webhookcfg.Lister); ok {
		return listingStore{cachedStore{c}, lister}
	}
	return cachedStore{c}
}

// cachedStore makes changes through a Cache. Cache has no Apply of its own: the handler
// would take it for a store that cannot list.
type cachedStore struct{ *Cache }

// Apply implements [webhookcfg.Store]. While it runs, nothing about the client is kept
// or shared: some callers would see the change, and others after them not yet.
func (s cachedStore) Apply(ctx context.Context, change webhookcfg.Change) error {
	if s.ctx.Err() != nil {
		return ErrClosed
	}
	s.clients.startChange(change.Client)
	defer s.clients.endChange(change.Client)
	return s.store.Apply(ctx, change)
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

// Close stops the polls and the reads, and waits for them. Every call after it
// returns [ErrClosed], as do those that wait for a read. It does not close the store.
func (c *Cache) Close() error {
	c.stop()
	c.clients.close()
	c.polling.Wait()
	return nil
}

// Stats say how a [Cache] is doing.
type Stats struct {
	// Entries is how many answers are kept.
	Entries int
	// Reads is how many times Resolve asked the store.
	Reads uint64
	// Age is how long ago the last poll began that succeeded; -1 before the first. If it
	// stays above MaxStale, nothing is kept longer than that.
	Age time.Duration
}

// Stats returns how the copy is doing.
func (c *Cache) Stats() Stats {
	stats := Stats{Entries: c.clients.count(), Reads: c.reads.Load(), Age: -1}
	if polled := instant(c.lastPoll.Load()); polled > 0 {
		stats.Age = c.now() - polled
	}
	return stats
}

func (c *Cache) now() instant { return time.Since(c.zero) }
