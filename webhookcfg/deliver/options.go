package deliver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Options are the options of [New]. The zero value is safe to use.
type Options struct {
	// Policy says which URLs and addresses may be called. Use the handler's policy. If nil,
	// the zero Policy applies: https and public addresses only.
	Policy *egress.Policy

	// Transport bounds the idle connections.
	Transport egress.TransportOptions

	// Timeout bounds an attempt, from the lookup of the keys to the header of the response.
	// Zero means 15 seconds. The maximum is 30 seconds. If jobs of your queue have a time
	// limit, give them a few seconds more than Timeout.
	Timeout time.Duration

	// PerClient is how many attempts for one client can be under way. Zero means 16.
	PerClient int

	// PerHost is how many attempts for one client at one host and port can be under way, whichever
	// of its webhooks lead there. Zero means 4.
	PerHost int

	// Limits returns a client's own limits, for example by its plan. Zero or less means
	// PerClient or PerHost. Every Send that finds a webhook calls it, so it should return at
	// once, and it must be safe for concurrent use. If nil, all clients have PerClient and
	// PerHost.
	Limits func(client string) (perClient, perHost int)

	// MaxPause bounds the pauses of a webhook or a host after failures in a row, and the ones that
	// receivers ask for with Retry-After. Zero means an hour.
	MaxPause time.Duration

	// MaxBody is the maximum size of a message's body in bytes. A larger message is
	// undeliverable with [ReasonMessage]. Zero means 256 KiB. Most receivers have limits of their
	// own, and the specification recommends less than 20 kB.
	MaxBody int

	// Health records how deliveries go, and stops deliveries to dead webhooks. If nil,
	// nothing is recorded or stopped, so after a [ReasonGone] you decide yourself whether to go
	// on sending.
	Health *Health

	// UserAgent is the User-Agent of the requests. Empty means "go-webhookcfg", which probes send,
	// too, whatever you set here.
	UserAgent string

	// Prepare adds fields to the header of a request, for each attempt and each test, after the
	// request was signed. Examples are a second signature that your receivers know from before,
	// trace context, or the WebHook-Request-Origin of [egress.Handshake]. The entity is "" for a
	// test of the base.
	//
	// Prepare gets a copy of the message and of the request, and only the copy's Header is sent.
	// If Prepare returns an error, panics, or changes anything that isn't its own, nothing is
	// sent, and the message is deferred with [ReasonUnavailable] and an error that says why. Its
	// own are all fields but webhook-id, webhook-timestamp, webhook-signature and those of the
	// connection, such as Connection, Content-Length, Expect or Proxy-Authorization.
	//
	// Prepare must be safe for concurrent use, and return soon after ctx ends, which is after
	// Timeout at the latest. The attempt waits for it and keeps its slots. If nil, nothing is
	// added.
	Prepare func(ctx context.Context, client, entity string, m Message, r *http.Request) error

	// OnResult is called at the end of each Send with its result, for metrics and logs. The
	// id is the message's. It must be safe for concurrent use, and Send waits for it. If nil,
	// it's not called.
	//
	// It's also called after a [Sender.Test] and a [Sender.Try]. What is tried isn't set: the
	// Webhook of that result has the Source SourceNone. If you act on a ReasonGone, leave those out.
	OnResult func(ctx context.Context, client, entity, id string, r Result)
}

// Defaults of [Options].
const (
	defaultTimeout   = 15 * time.Second
	defaultMaxPause  = time.Hour
	maxTimeout       = 30 * time.Second
	defaultUserAgent = "go-webhookcfg"
)

func (o *Options) complete() error {
	if min(o.Timeout, o.MaxPause) < 0 || min(o.PerClient, o.PerHost, o.MaxBody) < 0 {
		return errors.New("deliver: negative number in Options")
	}
	if o.Timeout > maxTimeout {
		return fmt.Errorf("deliver: Options.Timeout is %v, want %v or less", o.Timeout, maxTimeout)
	}
	if !isFieldValue(o.UserAgent) {
		return errors.New("deliver: Options.UserAgent is not a value of a header field")
	}
	o.Timeout = cmp.Or(o.Timeout, defaultTimeout)
	o.PerClient = cmp.Or(o.PerClient, defaultPerClient)
	o.PerHost = cmp.Or(o.PerHost, defaultPerHost)
	o.MaxPause = cmp.Or(o.MaxPause, defaultMaxPause)
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	o.UserAgent = cmp.Or(o.UserAgent, defaultUserAgent)
	if o.Policy == nil {
		o.Policy = new(egress.Policy)
	}
	o.Policy = o.Policy.Clone()
	return nil
}

// limits returns the limits of a client.
func (o *Options) limits(client string) (perClient, perHost int) {
	if o.Limits != nil {
		perClient, perHost = o.Limits(client)
	}
	if perClient <= 0 {
		perClient = o.PerClient
	}
	if perHost <= 0 {
		perHost = o.PerHost
	}
	return perClient, perHost
}
