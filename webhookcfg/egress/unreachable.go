package egress

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"

	"example.com/go-webhookcfg/internal/singleflight"
)

// Reason is the step at which a call failed. Keep reasons to your events and logs: a client
// that could read them could scan networks and ports.
type Reason string

// Reasons of an [UnreachableError].
const (
	// ReasonDNS: the lookup of the name failed or returned no address.
	ReasonDNS Reason = "dns"
	// ReasonDenied: the policy refused an address of the name.
	ReasonDenied Reason = "denied"
	// ReasonConnection: no connection was established.
	ReasonConnection Reason = "connection"
	// ReasonTLS: TLS failed, in the handshake or after it, or the certificate is invalid for a
	// reason that has no name here. If the receiver seems to require a client certificate, the
	// text of the error says so. Calls have none, so they don't renegotiate TLS either.
	ReasonTLS Reason = "tls"
	// ReasonCertificateExpired: the certificate, or one of its authorities', has expired or isn't valid
	// yet.
	ReasonCertificateExpired Reason = "certificate_expired"
	// ReasonUnknownAuthority: no authority that you trust has issued the certificate. Often
	// the receiver doesn't send the intermediate ones.
	ReasonUnknownAuthority Reason = "unknown_authority"
	// ReasonWrongName: the certificate is for other names.
	ReasonWrongName Reason = "wrong_name"
	// ReasonTimeout: a step exceeded its time limit.
	ReasonTimeout Reason = "timeout"
	// ReasonResponse: there was no response, or an [HTTPProbe] refused it.
	ReasonResponse Reason = "response"
)

// ErrUnavailable means that something on your side is unavailable, so the error isn't about
// the target. Either [Policy.LocalAddrs] failed, and the address wasn't called because it
// couldn't be checked. Or an [HTTPProbe] lacks something it needs, such as a key. Trying
// again later can help.
var ErrUnavailable = errors.New("egress: unavailable")

// UnreachableError means that a call of an endpoint failed. Its text contains the host, the
// port, the reason and perhaps a hint, such as "is unreachable: certificate_expired". To find out
// more, unwrap it. The cause may contain more than a log should have, such as addresses, or
// texts that the receiver sent.
type UnreachableError struct {
	// Endpoint is the host and port, such as "example.com:443".
	Endpoint string
	// Reason is the step that failed.
	Reason Reason

	cause     error
	connected bool
}

// Connected reports whether a call of a [Transport] failed after there was a connection, for https with TLS.
// So other URLs of the endpoint may work. It's false for probes, and if a client's own Timeout passed.
func (e *UnreachableError) Connected() bool { return e.connected }

// Error returns endpoint and reason, such as "egress: example.com:443 is unreachable:
// dns". For some reasons, a hint follows.
func (e *UnreachableError) Error() string {
	text := "egress: " + e.Endpoint + " is unreachable: " + string(e.Reason)
	if _, ok := errors.AsType[*clientCertificateError](e.cause); ok {
		text += ": the receiver seems to require a client certificate, and calls have none"
	}
	return text
}

// Format implements [fmt.Formatter]. Every verb writes the result of Error. Otherwise odd
// verbs such as %t would print the cause.
func (e *UnreachableError) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.Error()) }

// Timeout reports whether Reason is ReasonTimeout. [url.Error] and [os.IsTimeout] call it.
func (e *UnreachableError) Timeout() bool { return e.Reason == ReasonTimeout }

// Unwrap returns the cause, or nil if Reason is ReasonDenied. A client can see the
// PolicyError about its URL, but not one about the addresses of a name, so that error isn't
// wrapped.
func (e *UnreachableError) Unwrap() error { return e.cause }

// unreachable converts err, which occurred at the given step, into an [*UnreachableError], whose
// text has nothing of err, since that may quote the receiver. If ctx was cancelled, it returns
// the error of ctx. A panic of the host's functions and an error that wraps ErrUnavailable stay
// as they are.
func unreachable(ctx context.Context, to destination, step Reason, err error) error {
	var panicked *singleflight.PanicError
	var known *UnreachableError
	var rule PolicyError
	var netErr net.Error
	switch {
	case errors.As(err, &panicked):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.Is(err, ErrUnavailable):
		return err
	case errors.As(err, &known):
		return known
	case errors.As(err, &rule):
		return &UnreachableError{Endpoint: to.String(), Reason: ReasonDenied}
	case errors.As(err, &netErr) && netErr.Timeout(), ctx.Err() != nil:
		step = ReasonTimeout
	case step == ReasonTLS:
		step = certificateReason(err)
	}
	return &UnreachableError{Endpoint: to.String(), Reason: step, cause: err}
}

// certificateReason returns why a TLS handshake failed.
func certificateReason(err error) Reason {
	var invalid x509.CertificateInvalidError
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return ReasonCertificateExpired
	case errors.As(err, &authority):
		return ReasonUnknownAuthority
	case errors.As(err, &name):
		return ReasonWrongName
	default:
		return ReasonTLS
	}
}

// RedactError removes the URL from an error of [http.Client] or [url.Parse], because its path
// and query are secrets. It returns the error inside an [*url.Error], and any other error
// unchanged. If the client's Timeout passed, you get an [*UnreachableError] with
// [ReasonTimeout], since [http.Client] hides the error of its transport then.
func RedactError(err error) error {
	var withURL *url.Error
	if !errors.As(err, &withURL) {
		return err
	}
	var known *UnreachableError
	cause := RedactError(withURL.Err)
	if !withURL.Timeout() || errors.As(cause, &known) {
		return cause
	}
	return &UnreachableError{Endpoint: endpoint(withURL.URL), Reason: ReasonTimeout, cause: cause}
}

// endpoint returns the host and port of a URL, or "" if it has none.
func endpoint(rawURL string) string {
	u, err := url.Parse(rawURL)
	if err != nil || u.Host == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}
