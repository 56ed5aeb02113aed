package deliver

import (
	"context"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// Signatures is the value of the field webhook-signature.
var Signatures = signatures

// UnderWay returns the number of clients, hosts and webhooks with attempts under way.
func (s *Sender) UnderWay() int {
	s.limiter.mu.Lock()
	defer s.limiter.mu.Unlock()
	return len(s.limiter.clients) + len(s.limiter.hosts.inUse) + len(s.limiter.webhooks.inUse)
}

// Stopped reports whether Send would send nothing, and why.
func (h *Health) Stopped(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (Reason, bool) {
	return h.syncStopped(ctx, client, entity, hook)
}

// Load returns the record of the webhook in effect.
func (h *Health) Load(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (Record, error) {
	return h.load(ctx, client, entity, hook)
}

// Record records the result of an attempt that started at a time.
func (h *Health) Record(ctx context.Context, client, entity string, r Result, at time.Time) {
	_ = h.record(ctx, client, entity, r, at, false)
}

// Len returns the number of records in memory.
func (h *Health) Len() int { return h.records.Len() }

// TakeSlot takes the slot of an attempt, until it's released.
func (s *Sender) TakeSlot(ctx context.Context, client, entity string, m Message) (release func()) {
	a, _ := s.begin(ctx, client, entity, m, false)
	return func() { a.slot.release(time.Now(), verdict{}) }
}
