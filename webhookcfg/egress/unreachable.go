package egress

import (
	"context"
	"errors"
	"net"
	"net/url"
)

// Reason says at which step a call failed. Reasons are for the host's own events
// and logs: told to a client, they would let it map networks and ports.
type Reason string

// The reasons.
const (
	// ReasonDNS: the name could not be looked up, or has no address.
	ReasonDNS Reason = "dns"
	// ReasonDenied: the policy refused an address that the name led to.
	ReasonDenied Reason = "denied"
	// ReasonRefused: no connection came about, or it broke.
	ReasonRefused Reason = "refused"
	// ReasonTLS: the TLS handshake failed, or the certificate was not good.
	ReasonTLS Reason = "tls"
	// ReasonTimeout: one of the steps took too long.
	ReasonTimeout Reason = "timeout"
	// ReasonResponse: an [HTTPProbe] got no answer, or not the one it demands.
	ReasonResponse Reason = "response"
)

// UnreachableError says that an endpoint could not be called, and why. Its text
// holds the host, the port and the reason; the cause, which [errors.As] and
// [errors.Is] find, can hold more.
type UnreachableError struct {
	// Endpoint is the host and port, such as "example.com:443".
	Endpoint string
	// Reason says what failed.
	Reason Reason
	// PolicyErr is what an address broke, if Reason is ReasonDenied; else 0. It is kept
	// out of the reach of [errors.As]: the rule that a URL breaks may be told to
	// who sent it, but not what a name leads to.
	PolicyErr PolicyError

	cause error
}

// Error returns a text such as "egress: example.com:443 is unreachable: dns".
func (e *UnreachableError) Error() string {
	return "egress: " + e.Endpoint + " is unreachable: " + string(e.Reason)
}

// Unwrap returns the cause; nil if Reason is ReasonDenied.
func (e *UnreachableError) Unwrap() error { return e.cause }

// unreachable tells what err, which came up at the given step, means to who wants
// to reach the endpoint. A caller that hung up is told so.
func unreachable(ctx context.Context, to endpoint, step Reason, err error) error {
	var known *UnreachableError
	var rule PolicyError
	var netErr net.Error
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.As(err, &known):
		return known
	case errors.As(err, &rule):
		return &UnreachableError{Endpoint: to.String(), Reason: ReasonDenied, PolicyErr: rule}
	case errors.As(err, &netErr) && netErr.Timeout():
		step = ReasonTimeout
	}
	return &UnreachableError{Endpoint: to.String(), Reason: step, cause: err}
}

// RedactError returns err without the URL that [http.Client] and [url.Parse] put
// into the texts of their errors; path and query of a webhook URL are secrets.
// It returns the error inside an [*url.Error], and any other error as it is.
func RedactError(err error) error {
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return RedactError(withURL.Err)
	}
	return err
}
