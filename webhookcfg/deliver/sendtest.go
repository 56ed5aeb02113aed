package deliver

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

const (
	// testInterval is the minimum time between two tests of a host and port by a client. The limiter
	// remembers maxTested of them, and as many clients.
	testInterval = 10 * time.Second
	maxTested    = 10_000
	// maxTests is how many tests a client can make at once. It can make one more each second, since
	// it can give one server any number of names.
	maxTests = 60
)

var errTested = errors.New("deliver: the host was tested less than ten seconds ago, or the client made too many tests")

// Test is [Sender.Send] for a client that tests its webhook. It makes the attempt even if the
// webhook was stopped, or it or its host is paused after failures. If the test succeeds and the
// webhook was stopped, deliveries to it go on, in other processes as soon as they learn of it:
// see [Health]. If the [HealthStore] doesn't have the success, [Result.Err] says why. The
// configuration doesn't change.
//
// If entity is "", Test uses the client's base, the default webhook. The Resolver must then be a
// [webhookcfg.Lister], as the result of [example.com/go-webhookcfg/store/cache.Cache.Store] is.
//
// A client can test one host and port every ten seconds, regardless of the number of its
// webhooks there, and make 60 tests at once and then one a second. Before that, until the end of
// a pause that the receiver asked for with Retry-After, and while the client's limits are
// reached, the outcome is [Deferred] with a Wait. An outbox keeps limits and pauses of its own, so a
// test doesn't wait for those, and ends none. Call
// [example.com/go-webhookcfg/webhookcfg/deliver/outbox.Outbox.Changed] when a test has succeeded.
//
// A person may wait for a test, so it can have less time than a delivery. If the deadline of ctx
// passes before [Options.Timeout], and there's no response yet, nobody knows whether the
// receiver works: the outcome is Deferred with [ReasonUnavailable], and doesn't count as a
// failure. [Result.Err] then wraps an [*egress.UnreachableError] with [egress.ReasonTimeout].
func (s *Sender) Test(ctx context.Context, client, entity string, m Message) Result {
	return s.send(ctx, client, entity, m, true)
}

// Try is [Sender.Test] for a URL that isn't set, with the key that it would have. It's neither
// stopped nor recorded by a Health. No pause applies to it, since those are of webhooks that are set,
// and it neither starts nor ends one.
func (s *Sender) Try(ctx context.Context, client, entity string, target egress.URL, m Message) Result {
	trial := *s
	trial.isTrial = true
	trial.webhooks, trial.options.Health = only{URL: target}, nil
	return trial.send(ctx, client, entity, m, true)
}

// only is a Resolver that knows one webhook.
type only webhookcfg.Webhook

// Resolve implements [Resolver].
func (o only) Resolve(context.Context, string, string) (webhookcfg.Webhook, error) {
	return webhookcfg.Webhook(o), nil
}

// List implements [webhookcfg.Lister].
func (o only) List(context.Context, string, string, int) (webhookcfg.Page, error) {
	return webhookcfg.Page{Base: webhookcfg.Webhook(o)}, nil
}

// Tester returns [Sender.Test] in the form that
// [example.com/go-webhookcfg/webhookcfg/portal.Options.Test] needs. Each test sends m under an
// ID of its own, which starts with "test_", so leave m.ID empty.
//
// The function returns "" if the receiver accepted the test, and otherwise the public word for
// the reason. If the test has to wait, its error has a method RetryAfter. If ctx left less time
// than a delivery has, and there was no response, the error wraps an [*egress.UnreachableError]
// with [egress.ReasonTimeout]. Any other error means that the test couldn't be made, or that it was
// accepted but the HealthStore doesn't know, so that stopped deliveries may not resume. You can
// use it concurrently.
//
// The test goes to the webhook that the page passes, even if the Resolver of s still returns a
// previous one.
func (s *Sender) Tester(m Message) func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (reason string, err error) {
	return func(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (reason string, err error) {
		tester := *s
		tester.webhooks = only(hook)
		return testResult(tester.Test(ctx, client, entity, testMessage(m)))
	}
}

// Trier returns [Sender.Try] in the form that
// [example.com/go-webhookcfg/webhookcfg/portal.Options.Try] needs. See [Sender.Tester].
func (s *Sender) Trier(m Message) func(ctx context.Context, client, entity string, target egress.URL) (reason string, err error) {
	return func(ctx context.Context, client, entity string, target egress.URL) (reason string, err error) {
		return testResult(s.Try(ctx, client, entity, target, testMessage(m)))
	}
}

func testMessage(m Message) Message {
	m.ID = "test_" + rand.Text()
	return m
}

func testResult(r Result) (reason string, err error) {
	reason = r.Reason.Public()
	switch {
	case r.Outcome == Delivered:
		return "", r.Err
	case reason != "":
		return reason, nil
	case r.Reason == ReasonBusy, r.Reason == ReasonPaused:
		return "", &waitError{r.Err, r.Wait}
	case r.Err != nil:
		return "", r.Err
	default:
		return "", errNoWebhook
	}
}

var errNoWebhook = errors.New("deliver: no webhook to test")

// waitError asks to wait.
type waitError struct {
	error
	wait time.Duration
}

func (e *waitError) Unwrap() error             { return e.error }
func (e *waitError) RetryAfter() time.Duration { return e.wait }
