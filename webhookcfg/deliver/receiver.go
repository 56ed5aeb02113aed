package deliver

import (
	"iter"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
)

// Receiver is a host and port as one client uses it: clients share no state. See
// [Sender.Receivers].
type Receiver struct {
	// Client is the identifier of the client.
	Client string

	// HostPort is the host, in lower case, and the port, even if the URLs have none.
	HostPort string

	// UnderWay is the number of attempts under way.
	UnderWay int

	// Failures is the number of failures in a row.
	Failures int

	// PausedUntil is the end of the pause. It's zero if the receiver isn't paused.
	PausedUntil time.Time

	// Pause is the length of the last pause after failures. The next one is twice as long.
	Pause time.Duration

	// Limit is how many attempts may be under way: [Options.PerReceiver], the client's own
	// limit, or one after failures in a row.
	Limit int

	// Since is the latest [webhookcfg.Webhook.Since] that was sent to. A webhook that was set
	// later ends the pause.
	Since time.Time
}

// Receivers iterates over the receivers that have attempts under way, are paused, or failed
// last time. It takes a snapshot when the iteration starts, in no particular order. The
// sender remembers up to 10,000 receivers without attempts.
func (s *Sender) Receivers() iter.Seq[Receiver] {
	return func(yield func(Receiver) bool) {
		for _, r := range s.limiter.snapshot(time.Now()) {
			r.Limit = s.limitOf(r)
			if !yield(r) {
				return
			}
		}
	}
}

// Resume ends the pause of a receiver and forgets its failures. Take the arguments from a
// [Receiver]. For an unknown receiver, Resume does nothing. Messages in your queue stay there
// until they are due, so make them due if they shouldn't wait.
func (s *Sender) Resume(client, hostport string) {
	s.limiter.resume(receiverKey{client, hostport})
}

// Receiver returns what the sender knows about a receiver of a client. If it knows nothing,
// only Client, HostPort and Limit are set.
func (s *Sender) Receiver(client, hostport string) Receiver {
	key, now := receiverKey{client, hostport}, time.Now()
	s.limiter.mu.Lock()
	d := s.limiter.receiver(key).describe(key, now)
	s.limiter.mu.Unlock()
	d.Limit = s.limitOf(d)
	return d
}

func (s *Sender) limitOf(r Receiver) int {
	_, perReceiver := s.options.limits(r.Client)
	return (&receiver{State: pause.State{Failures: r.Failures}}).limit(perReceiver)
}

// Restore takes over the failures and the pause of a receiver, as another process knew them. It
// does nothing if the receiver has attempts under way here.
func (s *Sender) Restore(r Receiver) {
	s.limiter.restore(receiverKey{r.Client, r.HostPort}, r)
}

// receiverKey is a host and port as one client uses it. Clients share no state, because
// otherwise a client could get another one's receiver paused.
type receiverKey struct{ client, hostport string }

// receiver is what the limiter knows about a receiver.
type receiver struct {
	slots
	pause.State
	since time.Time // when the latest webhook that was sent to was set
}

// limit returns how many attempts may be under way: one until a receiver that was paused
// succeeds.
func (r *receiver) limit(perReceiver int) int {
	if r.IsFailing() {
		return 1
	}
	return perReceiver
}

// judge records the verdict of an attempt that started at the given time.
func (r *receiver) judge(v verdict, start, now time.Time, maxPause time.Duration) {
	if v.pause > 0 {
		r.Ask(now.Add(v.pause))
	}
	switch v.effect {
	case effectSuccess:
		r.Succeed()
	case effectFailure:
		r.Fail(start, now, maxPause)
	}
}

// renew forgets the failures and the pause if the webhook was set after the ones that were
// sent to.
func (r *receiver) renew(since time.Time) {
	if since.After(r.since) {
		r.State, r.since = pause.State{}, since
	}
}

func (r *receiver) describe(key receiverKey, now time.Time) Receiver {
	d := Receiver{Client: key.client, HostPort: key.hostport, UnderWay: r.taken, Failures: r.Failures, Pause: r.Length, Since: r.since}
	if end := r.End(); end.After(now) {
		d.PausedUntil = end
	}
	return d
}
