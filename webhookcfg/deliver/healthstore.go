package deliver

import (
	"context"
	"fmt"
	"time"

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

// healthRecord is the record of a webhook as it was set. When the webhook is set again,
// another one takes its place. Health.mu guards the fields.
type healthRecord struct {
	Record

	shown  webhookcfg.DeliveryStatus // the last that the host was told of, or may know
	stored Record                    // the record of the HealthStore
	saved  time.Time                 // when that was last written
	synced time.Time                 // the start of the interval of syncs
	syncs  int                       // the number of syncs in it
	busy   chan struct{}             // closed at the end of the present sync; nil if there is none
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

// isNews reports whether a store that has the record b lacks something of a. A stop comes with
// another reason or a later time.
func isNews(a, b Record) bool {
	return a.isKnown() &&
		(a.Reason != b.Reason || !a.Since.Equal(b.Since) ||
			a.LastSuccess.After(b.LastSuccess) || a.LastFailure.After(b.LastFailure))
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
		if rec.shown.State == "" {
			rec.shown = stored.status() // from before this process
		}
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
