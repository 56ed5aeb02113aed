package deliver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
)

// HealthStore keeps the records of a [Health] across processes and restarts. It has one
// record for each webhook: scope is [webhookcfg.All] for a client's base, and
// [webhookcfg.Entity] for an override. It must be safe for concurrent use and honour its
// context. Records contain no URLs and nothing that a receiver sent.
type HealthStore interface {
	// LoadDelivery returns the record last saved, or the zero Record.
	LoadDelivery(ctx context.Context, client string, scope webhookcfg.Scope) (Record, error)
	// SaveDelivery replaces the record, unless the present one has a later LastSuccess or
	// LastFailure than both of r's. It keeps times to the microsecond or better.
	SaveDelivery(ctx context.Context, client string, scope webhookcfg.Scope, r Record) error
}

// While a webhook is in use, its record is exchanged with the HealthStore once an interval,
// and at once if its state or reason changed. A receiver could alternate between success and
// failure, so the number of exchanges per interval is bounded.
const (
	syncInterval = time.Minute
	maxSyncs     = 10
	syncTimeout  = 2 * time.Second
)

// hangPause is how long we leave the store alone after a sync that timed out. Otherwise,
// while the store hangs, the first message to each webhook would hold a worker until the time
// limit.
const hangPause = 10 * time.Second

// healthRecord is the record of a webhook as it was set. Setting the webhook again replaces
// it. Health.mu guards the fields.
type healthRecord struct {
	Record

	target  uint64      // tells its URL from others
	trial   pause.State // of a stopped webhook that was set again: until then, it stays stopped
	isTried bool        // the attempt is under way

	shown       webhookcfg.DeliveryStatus // last told to the host, or known to it
	changesFull time.Time                 // when the host may hear of maxChanges changes again

	stored Record        // in the HealthStore
	saved  time.Time     // when stored was written
	synced time.Time     // the start of the interval of syncs
	syncs  int           // the number of syncs in it
	busy   chan struct{} // closed at the end of the present sync; nil if there is none
}

// load combines the records of this process and of the HealthStore.
func (h *Health) load(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (Record, error) {
	key, ok := newWebhookKey(client, entity, hook.Source)
	if !ok {
		return Record{}, nil
	}
	var known Record
	h.mu.Lock()
	if rec, ok := h.records.Get(key); ok && (rec.Since.Equal(hook.Since) || rec.isSame(hook, h.seed)) {
		known = rec.Record
		known.Since = hook.Since
	}
	h.mu.Unlock()
	if h.store == nil {
		return known, nil
	}
	stored, err := h.store.LoadDelivery(ctx, client, key.scope)
	if err != nil {
		return Record{}, fmt.Errorf("deliver: HealthStore: %w", err)
	}
	switch {
	case !stored.Since.Equal(hook.Since):
		return known, nil
	case stored.Stopped: // for all other processes, even if we have had a success since
		return stored, nil
	}
	return merge(stored, known, h.stopAfter/2), nil
}

// sync exchanges a record with the HealthStore, if that is due. It has a time limit of its
// own, and outlives the caller's context, so that no result is lost with it. It waits for
// another caller's sync only while nothing is known.
func (h *Health) sync(ctx context.Context, key webhookKey, rec *healthRecord) {
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
			_ = h.exchange(ctx, key, rec) // which logs its error
		case busy != nil && isFirst:
			select {
			case <-busy:
			case <-ctx.Done():
			}
			return
		default:
			return // the sync under way will find the news
		}
	}
}

// resumeStopped lets stopped deliveries resume in all processes after a test. The person who sent it
// reads that they do, so it spares the HealthStore less than sync, which would put off a failed
// exchange to the next attempt: a process that serves only pages makes none.
func (h *Health) resumeStopped(ctx context.Context, key webhookKey, rec *healthRecord) error {
	for h.store != nil {
		h.mu.Lock()
		busy := rec.busy
		if busy == nil {
			rec.busy = make(chan struct{})
		}
		h.mu.Unlock()
		if busy == nil {
			if err := h.exchange(ctx, key, rec); err != nil {
				return fmt.Errorf("deliver: HealthStore: %w", err)
			}
			break
		}
		select {
		case <-busy:
		case <-ctx.Done():
			return fmt.Errorf("deliver: HealthStore: %w", ctx.Err())
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if rec.Stopped {
		return errStillStopped
	}
	return nil
}

var errStillStopped = errors.New("deliver: the test was accepted, but a later attempt has stopped the webhook")

// isDue reports whether it is time to read the record of the store, or to write it.
func (rec *healthRecord) isDue(now time.Time) bool {
	isChange := rec.Stopped != rec.stored.Stopped || rec.Reason != rec.stored.Reason
	return now.Sub(rec.synced) >= syncInterval ||
		isNews(rec.Record, rec.stored) && (now.Sub(rec.saved) >= syncInterval || isChange && rec.syncs < maxSyncs)
}

// isNews reports whether a store with the record b lacks anything of a. A stop always changes
// the reason or a time.
func isNews(a, b Record) bool {
	return a.isKnown() &&
		(a.Reason != b.Reason || !a.Since.Equal(b.Since) ||
			a.LastSuccess.After(b.LastSuccess) || a.LastFailure.After(b.LastFailure))
}

// exchange reads the stored record, then writes if it lacks something. Without the read, it
// could overwrite another process's stop.
func (h *Health) exchange(ctx context.Context, key webhookKey, rec *healthRecord) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTimeout)
	defer cancel()
	var wrote, failed bool
	defer func() { h.endSync(rec, wrote, failed) }() // also after a panic of the store
	var stored Record
	if stored, err = h.store.LoadDelivery(ctx, key.client, key.scope); err == nil {
		var r Record
		if r, wrote = h.adopt(rec, stored); wrote {
			err = h.store.SaveDelivery(ctx, key.client, key.scope, r)
		}
	}
	if failed = err != nil; failed {
		if ctx.Err() != nil {
			h.pause()
		}
		h.logger.WarnContext(ctx, "HealthStore failed", "client", redact.Printable(key.client), "scope", key.scope, "error", redact.PrintableError(err))
	}
	return err
}

// pause makes all messages go on without the store for a while.
func (h *Health) pause() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.resume = time.Now().Add(hangPause)
}

// adopt merges the stored record into rec. It returns the record that the store should have,
// and whether the store lacks it.
func (h *Health) adopt(rec *healthRecord, stored Record) (r Record, lacking bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if stored.Since.Equal(rec.Since) {
		if rec.shown.State == "" {
			rec.shown = stored.status() // from before this process
		}
		rec.Record = merge(stored, rec.Record, h.stopAfter/2)
	}
	rec.stored, r = rec.Record, rec.Record
	if r.Stopped && stored.Since.Equal(r.Since) {
		// A later failure may have overwritten the stop, and an earlier one doesn't replace
		// it.
		r.LastFailure = latest(r.LastFailure, stored.LastFailure)
	}
	// Who doesn't know that it's on trial would send nothing.
	return r, isNews(r, stored) && !rec.trial.OnTrial
}

// endSync ends a sync. After a failed one, there is no other until the interval is over.
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
