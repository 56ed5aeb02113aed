package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
)

// PolicyError is the rule that a URL or an address breaks, as a sentence such as "the port
// must be a number from 1 to 65535 without leading zeros". Extract it with [errors.As], or
// match it with [errors.Is].
//
// The sentence is printable ASCII without quotation marks and backslashes. It never
// contains input, so you can return it to the client that sent the URL. A URL that breaks
// several rules gives one error.
type PolicyError string

// The rules that are worth telling apart in a program.
const (
	// ErrNotHTTPS: the scheme is not https, and [Policy.AllowHTTP] is not set.
	ErrNotHTTPS PolicyError = "the URL must be absolute with the scheme https"
	// ErrNotPublic: the address is not public unicast, which is an IPv4 address outside
	// the special-purpose registry, or an IPv6 address in 2000::/3 outside it.
	ErrNotPublic PolicyError = "the address must be a public unicast address"
)

// The other rules about the text of a URL, its host and port, and addresses.
const (
	errInvalidLength PolicyError = "the URL must have 1 to 2048 bytes"
	errInvalidByte   PolicyError = "the URL must consist of printable ASCII characters without spaces"
	// Parsers disagree about backslashes.
	errBackslash PolicyError = "the URL must not contain a backslash"
	// A fragment is never sent.
	errFragment PolicyError = "the URL must not contain a fragment"
	// RFC 3986 as [url.Parse] reads it, with nothing but an IPv6 address in brackets.
	errInvalidSyntax     PolicyError = "the URL must be well formed: a scheme, two slashes, a host, and what may follow"
	errUnsupportedScheme PolicyError = "the URL must be absolute with the scheme https or http"
	errUserinfo          PolicyError = "the URL must not contain a user name or password"

	errNoHost PolicyError = "the URL must have a host after its scheme and two slashes"
	// Internationalised names must be given as A-labels (RFC 5890).
	errInvalidHostName PolicyError = "the host name must consist of labels of 1 to 63 letters, digits, hyphens and underscores, with no hyphen at either end"
	errHostNameTooLong PolicyError = "the host name must have at most 253 bytes"
	// DNS ignores that dot, but TLS, HTTP and lists of names treat "a." and "a" as two hosts.
	errTrailingDot PolicyError = "the host name must not end with a dot"
	// Other spellings (127.1, 0x7f.1, 2130706433, 1e3) are addresses to some resolvers and
	// names to others.
	errNumericHost PolicyError = "a host that ends in a number, or is a single label that starts with a digit, must be an IPv4 address of four decimal numbers without leading zeros"
	// Localhost and the names under it (RFC 6761), unless a loopback address is allowed.
	errLocalhost PolicyError = "the host must not be localhost or a name under it"
	// A zone names an interface of this host.
	errZone           PolicyError = "the address must not have a zone"
	errInvalidPort    PolicyError = "the port must be a number from 1 to 65535 without leading zeros"
	errPortNotAllowed PolicyError = "the port must be one that this service calls"
	// In DenyPrefixes, or an address of this host.
	errAddressDenied PolicyError = "the address must be one that this service calls"
)

// Error returns the rule.
func (e PolicyError) Error() string { return string(e) }

// Reason is the step at which a call failed. Reasons are meant for the host's events
// and logs: disclosed to clients, they would allow them to scan networks and ports.
type Reason string

// Reasons of an [UnreachableError].
const (
	// ReasonDNS: the lookup of the name failed or returned no address.
	ReasonDNS Reason = "dns"
	// ReasonDenied: the policy refused an address of the name.
	ReasonDenied Reason = "denied"
	// ReasonConnection: no connection was established.
	ReasonConnection Reason = "connection"
	// ReasonTLS: the TLS handshake or the verification of the certificate failed.
	ReasonTLS Reason = "tls"
	// ReasonTimeout: a step exceeded its time limit.
	ReasonTimeout Reason = "timeout"
	// ReasonResponse: no response was received, or not the one that an [HTTPProbe]
	// requires.
	ReasonResponse Reason = "response"
)

// ErrUnavailable is wrapped by an error that shows nothing about the target, because
// something of the host's is unavailable: [Policy.LocalAddrs], so that an address could not
// be checked and was not called, or what an [HTTPProbe] needs, such as a key. The same call
// may succeed later.
var ErrUnavailable = errors.New("egress: unavailable")

// UnreachableError is returned if an endpoint could not be called. Its text contains
// the host, the port and the reason; the cause, which it wraps, may contain more.
type UnreachableError struct {
	// Endpoint is the host and port, such as "example.com:443".
	Endpoint string
	// Reason is the step that failed.
	Reason Reason

	cause error
}

// Error returns endpoint and reason, such as "egress: example.com:443 is unreachable:
// dns".
func (e *UnreachableError) Error() string {
	return "egress: " + e.Endpoint + " is unreachable: " + string(e.Reason)
}

// Format implements [fmt.Formatter]. Every verb writes the result of Error: an odd one, such
// as %t, would print the cause.
func (e *UnreachableError) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, e.Error()) }

// Timeout reports whether Reason is ReasonTimeout. [url.Error] and [os.IsTimeout] call it.
func (e *UnreachableError) Timeout() bool { return e.Reason == ReasonTimeout }

// Unwrap returns the cause, or nil if Reason is ReasonDenied: you can show a client the
// PolicyError about its URL, but not one about the addresses of a name.
func (e *UnreachableError) Unwrap() error { return e.cause }

// unreachable converts err, which occurred at the given step, into an
// [*UnreachableError], or into the error of ctx if that was cancelled. It does not convert
// an error that wraps ErrUnavailable.
func unreachable(ctx context.Context, to destination, step Reason, err error) error {
	var known *UnreachableError
	var rule PolicyError
	var netErr net.Error
	switch {
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
	}
	return &UnreachableError{Endpoint: to.String(), Reason: step, cause: err}
}

// RedactError removes the URL, whose path and query are secrets, from an error of
// [http.Client] or [url.Parse]: it returns the error inside an [*url.Error], and any
// other error unchanged. If the Timeout of a client passed, which hides the error of its
// transport, it returns an [*UnreachableError] with [ReasonTimeout].
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
