package deliver

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/lru"
	"example.com/go-webhookcfg/webhookcfg"
)

// HealthOptions are the options of [NewHealth]. The zero value is a usable default.
type HealthOptions struct {
	// MaxWebhooks bounds the webhooks kept in memory, of about 500 bytes each. Beyond that,
	// the client with the most loses the one used least recently, which is then unknown, or
	// read again from the HealthStore. Zero means 100,000.
	MaxWebhooks int

	// StopAfter is how long a webhook may fail before deliveries to it stop. Two failures
	// that are more than half of it apart don't count as one outage: silence in between
	// proves nothing. Zero means 5 days.
	StopAfter time.Duration

	// OnChange, if not nil, is called when the deliveries to a webhook start to fail, are
	// stopped, or succeed again: before and after have different States. The scope says
	// which webhook of the client it is. Tell the client, for example by mail.
	//
	// Each process calls it once for a change, when it learns of it: another may have called
	// it before, so note what you told the client. Setting the webhook again starts over: before
	// is then the last state of the webhook before. OnChange delays the return of Send, so it
	// must not block. It must be safe for concurrent use.
	OnChange func(ctx context.Context, client string, scope webhookcfg.Scope, before, after webhookcfg.DeliveryStatus)

	// Logger logs the webhooks that were stopped, and the errors of the HealthStore. If
	// nil, nothing is logged.
	Logger *slog.Logger
}

const (
	defaultMaxWebhooks = 100_000
	defaultStopAfter   = 5 * 24 * time.Hour
)

// Health records how the deliveries of a [Sender] go, and stops those that are of no use. As
// [webhookcfg.Options.DeliveryStatus] its method Status shows the records to the clients.
//
// A webhook is stopped when its receiver responds with status 410, or after nothing but
// failures for [HealthOptions.StopAfter]. The configuration of the client stays as it is:
// the sender just sends nothing, until the client sets the webhook again, to the same or to
// another URL, or a test of it is delivered: see [Sender.Test].
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
	onChange  func(ctx context.Context, client string, scope webhookcfg.Scope, before, after webhookcfg.DeliveryStatus)

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
	seed := maphash.MakeSeed()
	return &Health{
		store:     store,
		stopAfter: cmp.Or(o.StopAfter, defaultStopAfter),
		logger:    o.Logger,
		onChange:  o.OnChange,
		records: lru.NewShared[healthKey, *healthRecord](cmp.Or(o.MaxWebhooks, defaultMaxWebhooks), func(k healthKey) uint64 {
			return maphash.String(seed, k.client)
		}),
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

// Status returns how the deliveries to the webhook in effect for an entity go. Pass it as
// [webhookcfg.Options.DeliveryStatus]. For a base, which is the same for every entity, you can
// pass "". The error is the HealthStore's.
func (h *Health) Status(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
	if h == nil {
		return webhookcfg.DeliveryStatus{}, nil
	}
	r, err := h.load(ctx, client, entity, hook)
	return r.status(), err
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
	if !ok && h.store == nil {
		h.mu.Unlock()
		return "", false // nothing is known, and a record without anything could evict another
	}
	if !ok {
		rec = h.add(key, hook.Since)
	} else if !rec.Since.Equal(hook.Since) {
		shown := rec.shown
		rec = h.add(key, hook.Since)
		rec.shown = shown
	}
	h.mu.Unlock()
	h.sync(ctx, key, rec)
	h.notify(ctx, key, rec)
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
	wasStopped := rec.Stopped
	rec.Record = merge(rec.Record, news, h.stopAfter/2)
	if rec.isExpired(h.stopAfter) {
		rec.Stopped, rec.Reason = true, ReasonExpired
	}
	stop, reason := rec.Stopped && !wasStopped, rec.Reason
	h.mu.Unlock()
	if stop {
		h.logger.WarnContext(ctx, "deliveries to a webhook stopped", "client", key.client, "scope", key.scope, "reason", string(reason))
	}
	h.sync(ctx, key, rec)
	h.notify(ctx, key, rec)
}

// notify tells the host of a state that it was not told of.
func (h *Health) notify(ctx context.Context, key healthKey, rec *healthRecord) {
	h.mu.Lock()
	before, after := rec.shown, rec.status()
	if after.State != "" {
		rec.shown = after
	}
	h.mu.Unlock()
	isChange := after.State != "" && after.State != before.State && (before.State != "" || after.State != "ok")
	if isChange && h.onChange != nil {
		h.onChange(ctx, key.client, key.scope, before, after)
	}
}

// newRecord returns what the result of an attempt that started at a time says of its webhook;
// the zero Record if it says nothing. Like every store, it keeps microseconds.
//
// A webhook with the zero Since is never stopped: nothing would tell it from what the client
// sets next.
func newRecord(r Result, at time.Time) Record {
	at = at.Truncate(time.Microsecond)
	failure := Record{Since: r.Webhook.Since, Reason: r.Reason, LastFailure: at, FirstFailure: at}
	switch {
	case r.Outcome == Delivered:
		return Record{Since: r.Webhook.Since, LastSuccess: at}
	case r.Reason == ReasonGone:
		failure.Stopped = !r.Webhook.Since.IsZero()
	case r.Reason == ReasonPolicy:
		failure.FirstFailure = time.Time{} // nothing was attempted
	case r.Outcome != Failed:
		return Record{}
	}
	return failure
}

// isExpired reports whether all deliveries failed for a time, and the webhook can be stopped.
func (r Record) isExpired(stopAfter time.Duration) bool {
	return r.isFailing() && r.LastFailure.Sub(r.FirstFailure) >= stopAfter && !r.Since.IsZero()
}

// merge returns what two records of one webhook say together. Results arrive late, and the
// records of other processes at any time, so the attempt that started later has the last
// word, whichever is known first, and b among equals. But only a success ends a stop: a
// process that does not know of the stop may fail later.
func merge(a, b Record, maxSilence time.Duration) Record {
	switch {
	case !a.isKnown():
		return b
	case !b.isKnown():
		return a
	case latest(a.LastSuccess, a.LastFailure).After(latest(b.LastSuccess, b.LastFailure)):
		a, b = b, a
	}
	success, failure := latest(a.LastSuccess, b.LastSuccess), latest(a.LastFailure, b.LastFailure)
	if a.Stopped && !b.Stopped && !success.After(a.LastFailure) {
		b, failure = a, a.LastFailure
	}
	b.LastSuccess, b.LastFailure = success, failure
	if b.isFailing() {
		b.FirstFailure = firstFailure(a, b, maxSilence)
	}
	return b
}

// firstFailure returns the first failure of the series with which b ends, if a is the record
// before.
func firstFailure(a, b Record, maxSilence time.Duration) time.Time {
	first := b.FirstFailure
	if b.LastSuccess.After(first) {
		first = b.LastFailure // it succeeded in between
	}
	isSeries := !a.FirstFailure.IsZero() && !b.LastSuccess.After(a.FirstFailure) && first.Sub(a.LastFailure) <= maxSilence
	if isSeries && first.After(a.FirstFailure) {
		return a.FirstFailure
	}
	return first
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
