package deliver

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/ratelimit"
	"example.com/go-webhookcfg/webhookcfg"
)

const (
	// testInterval is the minimum time between two tests of a receiver by a client.
	testInterval = 10 * time.Second
	// maxTested is how many tested receivers we remember.
	maxTested = 10_000
)

// Test is [Sender.Send] for a client that tests its webhook. It makes the attempt even if the
// webhook was stopped or its receiver is paused after failures. If the test succeeds and the
// webhook was stopped, deliveries to it go on. The configuration doesn't change.
//
// If entity is "", Test uses the client's base. The Resolver must then be a
// [webhookcfg.Lister], as the Store of a Cache of package store/cache is.
//
// A client can test one host and port every ten seconds, regardless of the number of its
// webhooks there. Before that, until the end of a pause that the receiver asked for with
// Retry-After, and while the client's limits are reached, the outcome is [Deferred] with a
// Wait.
func (s *Sender) Test(ctx context.Context, client, entity string, m Message) Result {
	start := time.Now()
	hook, r, ok := s.resolveTest(ctx, client, entity, m)
	if ok {
		slot, deferral := s.takeTest(ctx, client, hook)
		if slot != nil {
			return (&Attempt{s, client, entity, m, hook, slot}).send(ctx, start)
		}
		r = deferral
	}
	return s.report(ctx, client, entity, m.ID, r, start, time.Now())
}

// takeTest returns a slot for a test, or the result if there's none.
func (s *Sender) takeTest(ctx context.Context, client string, hook webhookcfg.Webhook) (*slot, Result) {
	key := receiverKey{client, hostport(hook.URL)}
	if wait := s.tests.take(key, time.Now()); wait > 0 {
		return nil, Result{Outcome: Deferred, Reason: ReasonBusy, Wait: wait, Webhook: hook, Err: errTested}
	}
	g := s.limiter.acquire(key, hook.Since, time.Now(), true)
	if g.slot == nil {
		s.tests.giveBack(key, time.Now())
		g.wait = max(g.wait, minWait)
		return nil, g.deferral(ctx, hook)
	}
	return g.slot, Result{}
}

// resolveTest returns the webhook to test and true if it may be called, and otherwise the
// result.
func (s *Sender) resolveTest(ctx context.Context, client, entity string, m Message) (webhookcfg.Webhook, Result, bool) {
	var none webhookcfg.Webhook
	if client == "" {
		return none, Result{Outcome: Undeliverable, Reason: ReasonMessage, Err: errAddressee}, false
	}
	if err := m.Validate(); err != nil {
		return none, Result{Outcome: Undeliverable, Reason: ReasonMessage, Err: err}, false
	}
	hook, err := s.webhookToTest(ctx, client, entity)
	if err != nil {
		return none, unresolved(err), false
	}
	// Get to know the record of this setting first. Then a success ends its stop, here and in
	// the HealthStore.
	s.options.Health.syncStopped(ctx, client, entity, hook)
	return s.check(ctx, hook)
}

// webhookToTest returns the webhook in effect for an entity, or the base if the entity is "".
func (s *Sender) webhookToTest(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if entity != "" {
		return s.webhooks.Resolve(ctx, client, entity)
	}
	lister, ok := s.webhooks.(webhookcfg.Lister)
	if !ok {
		return webhookcfg.Webhook{}, errNoLister
	}
	page, err := lister.List(ctx, client, "", 1)
	return page.Base, err
}

var (
	errTested   = errors.New("deliver: receiver was tested less than ten seconds ago")
	errNoLister = fmt.Errorf("the Resolver is no Lister, which a test of the base needs: %w", webhookcfg.ErrInvalidArgument)
)

// tests bounds how often each receiver is tested. It is safe for concurrent use.
type tests struct {
	mu     sync.Mutex
	tested *ratelimit.Limiter[receiverKey]
}

func newTests() *tests {
	seed := maphash.MakeSeed()
	return &tests{tested: ratelimit.NewShared(1, testInterval, maxTested, func(k receiverKey) uint64 {
		return maphash.String(seed, k.client)
	})}
}

// take allows a test, or returns the time until the next one.
func (t *tests) take(key receiverKey, now time.Time) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if wait = t.tested.Wait(key, now); wait <= 0 {
		t.tested.Take(key, now)
	}
	return wait
}

// giveBack undoes a take.
func (t *tests) giveBack(key receiverKey, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tested.GiveBack(key, now)
}
