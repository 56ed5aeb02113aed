package egress

import (
	"context"
	"errors"
	"net"
	"net/url"
)

// PolicyError is the reason for which a policy refuses a URL or an address. Match it
// with [errors.Is], or extract it with [errors.As].
//
// Its text is a fixed sentence that states the rule, in printable ASCII without
// quotation marks and backslashes. It never contains input, and may be returned to the
// client that sent the URL.
type PolicyError uint8

// Errors about the text of a URL, about its host and port, and about addresses. A
// URL that violates several rules gives one error.
const (
	// ErrInvalidLength: the URL is empty or longer than 2048 bytes.
	ErrInvalidLength PolicyError = iota + 1
	// ErrInvalidByte: the URL contains a byte that is not printable ASCII, or a space.
	ErrInvalidByte
	// ErrBackslash: the URL contains a backslash; parsers disagree about it.
	ErrBackslash
	// ErrFragment: the URL contains "#"; a fragment is never sent.
	ErrFragment
	// ErrInvalidSyntax: the URL does not comply with RFC 3986 as [url.Parse] reads it,
	// or has a host in brackets that is not an IPv6 address.
	ErrInvalidSyntax
	// ErrNotHTTPS: the scheme is not https, and [Policy.AllowHTTP] is not set.
	ErrNotHTTPS
	// ErrUnsupportedScheme: the scheme is neither https nor http, and
	// [Policy.AllowHTTP] is set.
	ErrUnsupportedScheme
	// ErrUserinfo: the URL contains a user name or password.
	ErrUserinfo

	// ErrNoHost: the URL has no host after "//".
	ErrNoHost
	// ErrInvalidHostName: the host name does not consist of labels of 1 to 63 letters,
	// digits, hyphens and underscores, with no hyphen at either end, separated by
	// single dots. Internationalised names must be given as A-labels (RFC 5890).
	ErrInvalidHostName
	// ErrHostNameTooLong: the host name is longer than 253 bytes.
	ErrHostNameTooLong
	// ErrTrailingDot: the host name ends with a dot. DNS ignores that dot, but TLS,
	// HTTP and lists of names treat "a." and "a" as two hosts.
	ErrTrailingDot
	// ErrNumericHost: the last label of the host is a number, or the host is a single
	// label that starts with a digit, but the host is not an IPv4 address of four decimal
	// numbers without leading zeros. Other spellings (127.1, 0x7f.1, 2130706433, 1e3) are
	// addresses to some resolvers and names to others.
	ErrNumericHost
	// ErrLocalhost: the host is localhost or a name under it (RFC 6761), and the policy
	// allows no loopback address.
	ErrLocalhost
	// ErrZone: the address has a zone, which names an interface of this host.
	ErrZone
	// ErrInvalidPort: the port is not a number from 1 to 65535 without leading zeros.
	ErrInvalidPort
	// ErrPortNotAllowed: the port is not in [Policy.Ports].
	ErrPortNotAllowed

	// ErrNotPublic: the address is not public unicast, which is an IPv4 address outside
	// the special-purpose registry, or an IPv6 address in 2000::/3 outside it.
	ErrNotPublic
	// ErrAddressDenied: the address is in [Policy.DenyPrefixes], or is an address of
	// this host.
	ErrAddressDenied
)

var policyErrorTexts = [...]string{
	ErrInvalidLength:     "the URL must have 1 to 2048 bytes",
	ErrInvalidByte:       "the URL must consist of printable ASCII characters without spaces",
	ErrBackslash:         "the URL must not contain a backslash",
	ErrFragment:          "the URL must not contain a fragment",
	ErrInvalidSyntax:     "the URL must be well formed: a scheme, two slashes, a host, and what may follow",
	ErrNotHTTPS:          "the URL must be absolute with the scheme https",
	ErrUnsupportedScheme: "the URL must be absolute with the scheme https or http",
	ErrUserinfo:          "the URL must not contain a user name or password",
	ErrNoHost:            "the URL must have a host after its scheme and two slashes",
	ErrInvalidHostName:   "the host name must consist of labels of 1 to 63 letters, digits, hyphens and underscores, with no hyphen at either end",
	ErrHostNameTooLong:   "the host name must have at most 253 bytes",
	ErrTrailingDot:       "the host name must not end with a dot",
	ErrNumericHost:       "a host that ends in a number, or is a single label that starts with a digit, must be an IPv4 address of four decimal numbers without leading zeros",
	ErrLocalhost:         "the host must not be localhost or a name under it",
	ErrZone:              "the address must not have a zone",
	ErrInvalidPort:       "the port must be a number from 1 to 65535 without leading zeros",
	ErrPortNotAllowed:    "the port must be one that this service calls",
	ErrNotPublic:         "the address must be a public unicast address",
	ErrAddressDenied:     "the address must be one that this service calls",
}

// Error returns the rule that was violated, such as "the port must be a number from 1
// to 65535 without leading zeros".
func (e PolicyError) Error() string {
	if e == 0 || int(e) >= len(policyErrorTexts) {
		return "unknown policy error"
	}
	return policyErrorTexts[e]
}

// Reason is the step at which a call failed. Reasons are meant for the host's events
// and logs: disclosed to clients, they would allow them to scan networks and ports.
type Reason string

// Reasons of an [UnreachableError].
const (
	// ReasonDNS: the lookup of the name failed or returned no address.
	ReasonDNS Reason = "dns"
	// ReasonDenied: the policy refused an address of the name.
	ReasonDenied Reason = "denied"
	// ReasonRefused: no connection was established.
	ReasonRefused Reason = "refused"
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
