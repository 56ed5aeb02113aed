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
	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
)

// HealthOptions are the options of [NewHealth]. You can use the zero value.
type HealthOptions struct {
	// MaxWebhooks bounds the webhooks kept in memory, at about 600 bytes each. Beyond that,
	// the client with the most webhooks loses the least recently used one. Its state is then
	// unknown, or read again from the HealthStore. Zero means 100,000.
	MaxWebhooks int

	// StopAfter is how long a webhook may fail before deliveries to it stop. Two failures
	// that are more than half of StopAfter apart don't count as one outage, because nobody
	// knows what happened in between. Zero means 5 days.
	StopAfter time.Duration

	// OnChange is called when deliveries to a webhook start to fail, stop, or succeed again,
	// so that you can tell the client, for example by mail. The State of before and after
	// differs, and scope says which of the client's webhooks it is. When the client sets a
	// webhook again, before is the last state of the previous one.
	//
	// A receiver can alternate between success and failure, so you hear of four changes of a
	// webhook at once, and then of one every ten minutes. The last one isn't lost: it's
	// reported with the first message after that time.
	//
	// Each process calls OnChange when it learns of a change, so keep a note of what you told
	// the client if you have several processes. OnChange must be safe for concurrent use, and
	// must not block, since Send waits for it. If nil, nobody is told.
	OnChange func(ctx context.Context, client string, scope webhookcfg.Scope, before, after webhookcfg.DeliveryStatus)

	// Logger logs stopped webhooks and errors of the HealthStore. If nil, nothing is logged.
	Logger *slog.Logger
}

const (
	defaultMaxWebhooks = 100_000
	defaultStopAfter   = 5 * 24 * time.Hour
)

// Health records how the deliveries of a [Sender] go, and stops deliveries to dead webhooks.
// Pass [Sender.Status] as [webhookcfg.Options.DeliveryStatus] to show the records to clients, or
// Health's own method Status in a process without a Sender.
//
// It stops a webhook when the receiver responds with status 410, or when all attempts have
// failed for [HealthOptions.StopAfter]. The client's configuration stays as it is. Deliveries
// go on when a test succeeds, see [Sender.Test], or when the client sets another URL. Setting the same
// one again gets one attempt at once, at most one a minute, and deliveries go on if that succeeds. For a
// base, a test is better, because setting it again drops all overrides.
//
// A record belongs to a webhook as it was set, which [webhookcfg.Webhook.Since] identifies. Setting the
// same URL again keeps what's known, as long as the process remembers that it's the same. A webhook
// with a zero Since is never stopped. Only bases and overrides have records.
//
// Without a [HealthStore], records belong to one process and end with it. With one, processes
// learn of each other's stops within about a minute. If they disagree, the latest attempt
// wins, so keep the clocks of your servers within a few seconds of each other. If the
// HealthStore fails, messages are sent as if it weren't there. If it hangs for two seconds, no
// message calls it for ten. Status and a test that succeeds always do.
//
// A nil *Health is off: it records, shows and stops nothing. Health is safe for concurrent
// use and starts no goroutine.
type Health struct {
	store     HealthStore
	stopAfter time.Duration
	logger    *slog.Logger
	onChange  func(ctx context.Context, client string, scope webhookcfg.Scope, before, after webhookcfg.DeliveryStatus)
	seed      maphash.Seed // tells clients and URLs apart

	mu      sync.Mutex
	records *lru.Map[webhookKey, *healthRecord]
	resume  time.Time // no sync starts before; zero unless the store has hung
}

// NewHealth returns an empty Health. A nil store keeps the records in memory only. The store of
// package [example.com/go-webhookcfg/store/sqlstore] is a [HealthStore]; call its Migrate first.
// Nil opts means the zero value.
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
		seed:      seed,
		records: lru.NewShared[webhookKey, *healthRecord](cmp.Or(o.MaxWebhooks, defaultMaxWebhooks), func(k webhookKey) uint64 {
			return maphash.String(seed, k.client)
		}),
	}, nil
}

// Status returns how deliveries to the webhook in effect for an entity go, without pauses, of which
// only a [Sender] knows: see [Sender.Status]. A base is the same for every entity, so you can pass
// "" as the entity. The error is the HealthStore's.
func (h *Health) Status(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
	if h == nil {
		return webhookcfg.DeliveryStatus{}, nil
	}
	r, err := h.load(ctx, client, entity, hook)
	return r.status(), err
}

// syncStopped exchanges the record with the HealthStore if that is due, and reports whether
// the webhook in effect for an entity was stopped, and why.
func (h *Health) syncStopped(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (Reason, bool) {
	if h == nil {
		return "", false
	}
	key, ok := newWebhookKey(client, entity, hook.Source)
	if !ok {
		return "", false
	}
	h.mu.Lock()
	rec, ok := h.records.Get(key)
	if !ok && h.store == nil {
		h.mu.Unlock()
		return "", false // we know nothing, and an empty record could evict a useful one
	}
	if !ok {
		rec = h.add(key, hook)
	} else if !rec.Since.Equal(hook.Since) {
		was := rec
		rec = h.add(key, hook)
		rec.follow(was, time.Now())
	}
	h.mu.Unlock()
	h.sync(ctx, key, rec)
	h.notify(ctx, key, rec)
	h.mu.Lock()
	defer h.mu.Unlock()
	return rec.Reason, rec.Stopped && !rec.isOnTrial(time.Now())
}

func (h *Health) add(key webhookKey, hook webhookcfg.Webhook) *healthRecord {
	rec := &healthRecord{Record: Record{Since: hook.Since}, target: targetOf(hook, h.seed)}
	h.records.Put(key, rec)
	return rec
}

// record records the result of an attempt that started at the given time. If a test succeeded, and
// the HealthStore doesn't know that afterwards, the error says why.
func (h *Health) record(ctx context.Context, client, entity string, r Result, at time.Time, isTest bool) (err error) {
	if h == nil {
		return nil
	}
	key, ok := newWebhookKey(client, entity, r.Webhook.Source)
	news := newRecord(r, at)
	if !ok || !news.isKnown() {
		return nil
	}
	h.mu.Lock()
	rec, ok := h.records.Get(key)
	if !ok {
		rec = h.add(key, r.Webhook)
	}
	isOld := !rec.Since.Equal(news.Since) // the client has set the webhook again since
	if isOld && (r.Outcome != Delivered || !rec.isSame(r.Webhook, h.seed)) {
		h.mu.Unlock()
		return nil
	}
	news.Since = rec.Since
	wasStopped := rec.Stopped
	rec.Record = merge(rec.Record, news, h.stopAfter/2)
	if r.Reason != ReasonPolicy {
		rec.endTrial(news.LastFailure)
	}
	if rec.isExpired(h.stopAfter) {
		rec.Stopped, rec.Reason = true, ReasonExpired
	}
	stop, reason := rec.Stopped && !wasStopped, rec.Reason
	h.mu.Unlock()
	if stop {
		h.logger.WarnContext(ctx, "deliveries to a webhook stopped", "client", redact.Printable(key.client), "scope", key.scope, "reason", string(reason))
	}
	if isTest && r.Outcome == Delivered {
		err = h.resumeStopped(ctx, key, rec)
	} else {
		h.sync(ctx, key, rec)
	}
	h.notify(ctx, key, rec)
	return err
}

// notify tells the host about a state that it hasn't heard of, unless it has heard of too many.
func (h *Health) notify(ctx context.Context, key webhookKey, rec *healthRecord) {
	h.mu.Lock()
	before, after := rec.shown, rec.status()
	isChange := after.State != "" && after.State != before.State && (before.State != "" || after.State != "ok")
	if isChange && !rec.takeChange(time.Now()) {
		h.mu.Unlock()
		return
	}
	if after.State != "" {
		rec.shown = after
	}
	h.mu.Unlock()
	if isChange && h.onChange != nil {
		h.onChange(ctx, key.client, key.scope, before, after)
	}
}

// The host hears of this many changes of a webhook at once, and then of one per interval.
const (
	maxChanges     = 4
	changeInterval = 10 * time.Minute
)

// takeChange reports whether the host may hear of a change now.
func (rec *healthRecord) takeChange(now time.Time) bool {
	full := latest(rec.changesFull, now)
	if full.Sub(now) > (maxChanges-1)*changeInterval {
		return false
	}
	rec.changesFull = full.Add(changeInterval)
	return true
}

// newRecord returns the record of a single result. It's the zero Record if the result says
// nothing about the webhook. Like every store, it keeps microseconds. A webhook with a zero
// Since is never stopped, since we couldn't tell it from the client's next one.
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
	case r.Outcome != Failed && r.Status == 0:
		return Record{}
	}
	return failure
}

// isExpired reports whether all deliveries failed for so long that the webhook can be
// stopped.
func (r Record) isExpired(stopAfter time.Duration) bool {
	return r.isFailing() && r.LastFailure.Sub(r.FirstFailure) >= stopAfter && !r.Since.IsZero()
}

// merge combines two records of one webhook. Results arrive late, and other processes'
// records at any time, so the attempt that started later wins, and b in a tie. But only a
// success ends a stop: a process that hasn't heard of the stop may fail later.
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

// firstFailure returns when the failures at the end of b started, if a is the earlier record.
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
