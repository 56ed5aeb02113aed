package deliver

import (
	"context"
	"hash/maphash"
	"iter"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
)

// Failing is a webhook that is paused, or failed last time. See [Sender.Failing].
type Failing struct {
	// Client is the identifier of the client.
	Client string

	// Scope says which webhook of the client it is: the base, or the override of an entity.
	Scope webhookcfg.Scope

	// HostPort is the host, in lower case, and the port, even if the URL has none.
	HostPort string

	// Failures is the number of failures in a row. If nobody can connect to the host, it's that of
	// all attempts of the client there, if there are more.
	Failures int

	// PausedUntil is the end of the pause. It's zero if there's none.
	PausedUntil time.Time
}

// Failing iterates over the webhooks that are paused, or failed last time. It takes a snapshot when
// the iteration starts, in no particular order. The sender remembers up to 10,000 of them without
// attempts under way, and forgets what it knows about one when it sends to another URL of it. Those
// of an outbox aren't among them: see
// [example.com/go-webhookcfg/webhookcfg/deliver/outbox.Outbox.ClientStats].
func (s *Sender) Failing() iter.Seq[Failing] {
	return func(yield func(Failing) bool) {
		for _, f := range s.limiter.failing(time.Now()) {
			if !yield(f) {
				return
			}
		}
	}
}

// Resume ends the pause of a webhook and forgets its failures. If nobody could connect to its host,
// that's forgotten for all webhooks of the client there. Take the arguments from a [Failing]. For
// any other webhook, Resume does nothing. Messages in your queue stay there until they are due, so
// make them due if they shouldn't wait.
func (s *Sender) Resume(client string, scope webhookcfg.Scope) {
	s.limiter.resume(webhookKey{client, scope})
}

// Status is [Health.Status] of [Options.Health], with the end of the pause while deliveries to a failing
// webhook pause. That's what this process knows, as in [Sender.Failing]. Pass the method as
// [webhookcfg.Options.DeliveryStatus], unless your queue has pauses of its own, as package
// [example.com/go-webhookcfg/webhookcfg/deliver/outbox] does.
func (s *Sender) Status(ctx context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
	status, err := s.options.Health.Status(ctx, client, entity, hook)
	if key, ok := newWebhookKey(client, entity, hook.Source); ok && status.State == "failing" {
		status.PausedUntil = s.limiter.pausedUntil(key, s.limiter.setting(hook), time.Now())
	}
	return status, err
}

// webhookKey identifies a webhook: the base of a client or one of its overrides.
type webhookKey struct {
	client string
	scope  webhookcfg.Scope
}

// newWebhookKey returns the key of the webhook in effect for an entity, if it has one.
func newWebhookKey(client, entity string, source webhookcfg.Source) (key webhookKey, ok bool) {
	switch source {
	case webhookcfg.SourceBase:
		return webhookKey{client, webhookcfg.All()}, true
	case webhookcfg.SourceOverride:
		return webhookKey{client, webhookcfg.Entity(entity)}, true
	default:
		return webhookKey{}, false
	}
}

// isTried reports whether it's a URL that is tried, and no webhook.
func (k webhookKey) isTried() bool { return k.scope == webhookcfg.Scope{} }

// webhook is what the limiter knows about a webhook, as it's set now. It's what fails and pauses.
type webhook struct {
	slots
	pause.State
	setting setting
}

// setting tells the settings of a webhook apart.
type setting struct {
	since    int64  // in microseconds
	target   uint64 // a hash of the URL
	hostport string
}

// targetOf returns what tells the URL of a webhook from others, in this process.
func targetOf(hook webhookcfg.Webhook, seed maphash.Seed) uint64 {
	return maphash.String(seed, hook.URL.Reveal())
}

// isSameURL reports whether two settings have the same URL.
func (s setting) isSameURL(other setting) bool {
	return s.target == other.target && s.hostport == other.hostport
}

// set takes in a setting, and reports whether it's another one. It needn't be later: the clocks of
// several processes differ. Another URL starts afresh, and the same one again gets one attempt.
func (w *webhook) set(to setting, now time.Time) bool {
	was := w.setting
	switch {
	case to == was:
		return false
	case to.isSameURL(was):
		w.Trial(now)
	default:
		w.State = pause.State{}
	}
	w.setting = to
	return true
}

// judge records the verdict of an attempt that started at a time.
func (w *webhook) judge(v verdict, start, now time.Time, maxPause time.Duration) {
	if v.pause > 0 {
		w.Ask(now.Add(v.pause))
	}
	switch v.effect {
	case effectSuccess:
		w.Succeed()
	case effectFailure:
		w.Fail(start, now, maxPause)
	}
}

// hostKey is a host and port as one client uses it. Clients share no state, because otherwise a
// client could get another one's host paused.
type hostKey struct{ client, hostport string }

// host is what the limiter knows about a host and port. It pauses only if nobody can connect to it.
type host struct {
	slots
	pause.State
}

// judge records the verdict of an attempt that started at a time.
func (h *host) judge(v verdict, start, now time.Time, maxPause time.Duration) {
	switch {
	case v.effect == effectUnconnected:
		h.Fail(start, now, maxPause)
	case v.hasResponse:
		h.Succeed()
	}
}
