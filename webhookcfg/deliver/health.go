package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/lru"
	"example.com/go-webhookcfg/webhookcfg"
)

// HealthStore keeps the records of a [Health] for other processes and for restarts. It has
// one record for each webhook: with [webhookcfg.All] that of the base of a client, with
// [webhookcfg.Entity] that of an override. It must be safe for concurrent use and honour its
// context. A record holds neither a URL nor anything that a receiver sent.
type HealthStore interface {
	// LoadDelivery returns the record last saved; the zero Record if there is none.
	LoadDelivery(ctx context.Context, client string, scope webhookcfg.Scope) (Record, error)
	// SaveDelivery replaces the record, unless LastSuccess or LastFailure of the present one
	// is later than both of r. Times are kept to the microsecond at least.
	SaveDelivery(ctx context.Context, client string, scope webhookcfg.Scope, r Record) error
}

// HealthOptions are the options of [NewHealth]. The zero value is a usable default.
type HealthOptions struct {
	// MaxWebhooks bounds the webhooks kept in memory, of about 500 bytes each. Those used
	// least recently are dropped, and are then unknown, or read again from the HealthStore.
	// Zero means 100,000.
	MaxWebhooks int

	// StopAfter is for how long all deliveries to a webhook fail until it is stopped. Two
	// failures that are more than half of it apart do not count as one outage: silence in
	// between proves nothing. Zero means 5 days.
	StopAfter time.Duration

	// Logger logs the webhooks that were stopped, and the errors of the HealthStore. If
	// nil, nothing is logged.
	Logger *slog.Logger
}

const (
	defaultMaxWebhooks = 100_000
	defaultStopAfter   = 5 * 24 * time.Hour
)

// A record is exchanged with the HealthStore once in an interval while the webhook is in use,
// and at once if its state or reason changed. The number of exchanges in an interval is
// bounded, since a receiver may alternate between success and failure.
const (
	syncInterval = time.Minute
	maxSyncs     = 10
	syncTimeout  = 2 * time.Second
)

// hangPause is for how long no sync starts after one that ran into its time limit. Otherwise,
// while the store hangs, the first message to each webhook would occupy a worker until then.
const hangPause = 10 * time.Second

// Health records how the deliveries of a [Sender] go, and stops those that are of no use. As
// [webhookcfg.Options.DeliveryStatus] its method Status shows the records to the clients.
//
// A webhook is stopped when its receiver responds with status 410, or after nothing but
// failures for [HealthOptions.StopAfter]. The configuration of the client stays as it is:
// the sender just sends nothing, until the client sets the webhook again, to the same or to
// another URL.
//
// A record belongs to the webhook as it was set, which [webhookcfg.Webhook.Since] identifies:
// setting the webhook again starts over. A webhook with the zero Since is never stopped. A
// webhook that is neither a base nor an override has no record.
//
// Without a HealthStore the records are those of one process and end with it. With one,
// processes learn of each other's stops within about a minute. The attempt that started last
// counts, so keep the clocks of your servers within a few seconds of each other. If the
// HealthStore fails, messages are sent as if it were not there; once it has
// hung for two seconds, all are for the next ten.
//
// A nil Health records nothing, shows nothing and stops nothing. Health is safe for concurrent
// use and has no goroutine.
type Health struct {
	store     HealthStore
	stopAfter time.Duration
	logger    *slog.Logger

	mu      sync.Mutex
	records *lru.Map[healthKey, *healthRecord]
	resume  time.Time // no sync starts before; zero unless the store has hung
}

// NewHealth returns a Health without records. If store is nil, they are kept in memory
// alone; if opts is nil, the zero value is used.
func NewHealth(store HealthStore, opts *HealthOptions) (*Health, error) {
	var o HealthOptions
	if opts != nil {
		o = *opts
	}
	if o.MaxWebhooks < 0 || o.StopAfter < 0 {
		return nil, errors.New("deliver: negative number in HealthOptions")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &Health{
		store:     store,
		stopAfter: cmp.Or(o.StopAfter, defaultStopAfter),
		logger:    o.Logger,
		records:   lru.New[healthKey, *healthRecord](cmp.Or(o.MaxWebhooks, defaultMaxWebhooks)),
	}, nil
}

// healthKey identifies a webhook: the base of a client or one of its overrides.
type healthKey struct {
	client string
	scope  webhookcfg.Scope
}

// newHealthKey returns the key of the webhook in effect for an entity, if it has one.
func newHealthKey(client, entity string, source webhookcfg.Source) (key healthKey, ok bool) {
	switch source {
	case webhookcfg.SourceBase:
		return healthKey{client, webhookcfg.All()}, true
	case webhookcfg.SourceOverride:
		return healthKey{client, webhookcfg.Entity(entity)}, true
	default:
		return healthKey{}, false
	}
}

// healthRecord is the record of a webhook as it was set. When the webhook is set again,
// another one takes its place. Health.mu guards the fields.
type healthRecord struct {
	Record

	stored Record        // the record of the HealthStore
	saved  time.Time     // when that was last written
	synced time.Time     // the start of the interval of syncs
	syncs  int           // the number of syncs in it
	busy   chan struct{} // closed at the end of the present sync; nil if there is none
}

// Status returns how the deliveries to the webhook in effect for an entity go. Pass it as
// [webhookcfg.Options.DeliveryStatus]. The error is the HealthStore's.
func (h *Health) Status(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
	if h == nil {
		return webhookcfg.DeliveryStatus{}, nil
	}
	r, err := h.load(ctx, client, entity, hook)
	return r.status(), err
}

// load returns what this process and the HealthStore know together.
func (h *Health) load(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (Record, error) {
	key, ok := newHealthKey(client, entity, hook.Source)
	if !ok {
		return Record{}, nil
	}
	var known Record
	h.mu.Lock()
	if rec, ok := h.records.Get(key); ok && rec.Since.Equal(hook.Since) {
		known = rec.Record
	}
	h.mu.Unlock()
	if h.store == nil {
		return known, nil
	}
	stored, err := h.store.LoadDelivery(ctx, client, key.scope)
	if err != nil {
		return Record{}, fmt.Errorf("deliver: HealthStore: %w", err)
	}
	if !stored.Since.Equal(hook.Since) {
		return known, nil
	}
	return merge(stored, known, h.stopAfter/2), nil
}

// syncStopped reports whether the webhook in effect for an entity was stopped, and why, after
// it exchanged the record with the HealthStore, if that is due.
func (h *Health) syncStopped(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (Reason, bool) {
	if h == nil {
		return "", false
	}
	key, ok := newHealthKey(client, entity, hook.Source)
	if !ok {
		return "", false
	}
	h.mu.Lock()
	rec, ok := h.records.Get(key)
	if !ok || !rec.Since.Equal(hook.Since) {
		rec = h.add(key, hook.Since)
	}
	h.mu.Unlock()
	h.sync(ctx, key, rec)
	h.mu.Lock()
	defer h.mu.Unlock()
	return rec.Reason, rec.Stopped
}

func (h *Health) add(key healthKey, since time.Time) *healthRecord {
	rec := &healthRecord{Record: Record{Since: since}}
	h.records.Put(key, rec)
	return rec
}

// record records the result of an attempt that started at a time.
func (h *Health) record(ctx context.Context, client, entity string, r Result, at time.Time) {
	if h == nil {
		return
	}
	key, ok := newHealthKey(client, entity, r.Webhook.Source)
	news := newRecord(r, at)
	if !ok || !news.isKnown() {
		return
	}
	h.mu.Lock()
	rec, ok := h.records.Get(key)
	if !ok {
		rec = h.add(key, news.Since)
	}
	if !rec.Since.Equal(news.Since) {
		h.mu.Unlock()
		return // the client has set the webhook again since
	}
	before := rec.Stopped
	rec.Record = merge(rec.Record, news, h.stopAfter/2)
	if rec.isExpired(h.stopAfter) {
		rec.Stopped, rec.Reason = true, ReasonExpired
	}
	stop, reason := rec.Stopped && !before, rec.Reason
	h.mu.Unlock()
	if stop {
		h.logger.WarnContext(ctx, "deliveries to a webhook stopped", "client", key.client, "scope", key.scope, "reason", string(reason))
	}
	h.sync(ctx, key, rec)
}

// sync exchanges a record with the HealthStore, if that is due. It is bounded in time, and
// goes on after the caller's context ended: what an attempt showed must not be lost with it.
// It waits for a sync of another caller only as long as nothing is known.
func (h *Health) sync(ctx context.Context, key healthKey, rec *healthRecord) {
	for h.store != nil {
		h.mu.Lock()
		busy, isFirst := rec.busy, rec.synced.IsZero()
		now := time.Now()
		due := busy == nil && !now.Before(h.resume) && rec.isDue(now)
		if due {
			rec.busy = make(chan struct{})
		}
		h.mu.Unlock()
		switch {
		case due:
			h.exchange(ctx, key, rec)
		case busy != nil && isFirst:
			select {
			case <-busy:
			case <-ctx.Done():
			}
			return
		default:
			return // the caller whose sync is under way finds what has changed since
		}
	}
}

// isDue reports whether it is time to read the record of the store, or to write it.
func (rec *healthRecord) isDue(now time.Time) bool {
	isChange := rec.Stopped != rec.stored.Stopped || rec.Reason != rec.stored.Reason
	return now.Sub(rec.synced) >= syncInterval ||
		isNews(rec.Record, rec.stored) && (now.Sub(rec.saved) >= syncInterval || isChange && rec.syncs < maxSyncs)
}

// exchange reads the record of the store, and then writes what that lacks: without the read,
// it could overwrite the stop of another process.
func (h *Health) exchange(ctx context.Context, key healthKey, rec *healthRecord) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	var wrote, failed bool
	defer func() { h.endSync(rec, wrote, failed) }() // also after a panic of the store
	stored, err := h.store.LoadDelivery(ctx, key.client, key.scope)
	if err == nil {
		var r Record
		if r, wrote = h.adopt(rec, stored); wrote {
			err = h.store.SaveDelivery(ctx, key.client, key.scope, r)
		}
	}
	if failed = err != nil; failed {
		if ctx.Err() != nil {
			h.pause()
		}
		h.logger.WarnContext(ctx, "HealthStore failed", "client", key.client, "scope", key.scope, "error", err)
	}
}

// pause makes the messages to all webhooks go on without the store for a while.
func (h *Health) pause() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resume = time.Now().Add(hangPause)
}

// adopt merges the record of the store into rec, and returns what the store is to have, and
// whether it lacks that.
func (h *Health) adopt(rec *healthRecord, stored Record) (r Record, lacking bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if stored.Since.Equal(rec.Since) {
		rec.Record = merge(stored, rec.Record, h.stopAfter/2)
	}
	rec.stored, r = rec.Record, rec.Record
	if r.Stopped && stored.Since.Equal(r.Since) {
		// A later failure may have overwritten the stop, and is not replaced by an earlier one.
		r.LastFailure = latest(r.LastFailure, stored.LastFailure)
	}
	return r, isNews(r, stored)
}

// endSync ends a sync. After one that failed there is none until the interval is over.
func (h *Health) endSync(rec *healthRecord, wrote, failed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if now.Sub(rec.synced) >= syncInterval {
		rec.synced, rec.syncs = now, 0
	}
	rec.syncs++
	if failed {
		rec.syncs = maxSyncs
	}
	if wrote || failed {
		rec.saved = now
	}
	close(rec.busy)
	rec.busy = nil
}
