package egress

import (
	"context"
	"errors"
	"net"
	"net/url"
)

// PolicyError is a rule that a URL or an address must keep, and at the same time the
// error that says it was broken: find it with [errors.As], or compare it with
// [errors.Is].
//
// The text of a rule is one fixed sentence of printable ASCII without quotation
// marks and backslashes. It never holds input, so it can be sent to whoever sent
// the URL.
type PolicyError uint8

// The rules about the text of a URL come first, then those about its host and
// port, then those about addresses. A URL that breaks several rules is reported
// with one of them.
const (
	// ErrInvalidLength: the URL has 1 to 2048 bytes.
	ErrInvalidLength PolicyError = iota + 1
	// ErrInvalidByte: every byte is printable ASCII, and none a space.
	ErrInvalidByte
	// ErrBackslash: there is no backslash; parsers disagree about it.
	ErrBackslash
	// ErrFragment: there is no "#"; a fragment is never sent.
	ErrFragment
	// ErrInvalidSyntax: the URL keeps to RFC 3986 as [url.Parse] understands it; what
	// stands in brackets is an IPv6 address.
	ErrInvalidSyntax
	// ErrNotHTTPS: the scheme is https. It stands for ErrUnsupportedScheme where
	// [Policy.AllowHTTP] is not set.
	ErrNotHTTPS
	// ErrUnsupportedScheme: the scheme is https or http.
	ErrUnsupportedScheme
	// ErrUserinfo: there is no user name or password.
	ErrUserinfo

	// ErrNoHost: there is a host, after "//".
	ErrNoHost
	// ErrInvalidHostName: a host name is made of labels of 1 to 63 letters, digits, hyphens
	// and underscores, without a hyphen at either end, parted by single dots.
	// Internationalised names are written as A-labels (RFC 5890).
	ErrInvalidHostName
	// ErrHostNameTooLong: a host name has at most 253 bytes.
	ErrHostNameTooLong
	// ErrTrailingDot: a host name does not end with a dot. The dot means nothing
	// in DNS, but TLS, HTTP and lists of names take "a." and "a" for two hosts.
	ErrTrailingDot
	// ErrNumericHost: a host whose last label is a number is an IPv4 address of
	// four decimal numbers without leading zeros. The other spellings (127.1,
	// 0x7f.1, 2130706433) are an address to some resolvers and a name to others.
	ErrNumericHost
	// ErrLocalhost: the host is neither localhost nor under it (RFC 6761), except
	// where the policy allows a loopback address.
	ErrLocalhost
	// ErrZone: an address has no zone; a zone names an interface of this host.
	ErrZone
	// ErrInvalidPort: the port is absent, or 1 to 65535 in digits without leading zeros.
	ErrInvalidPort
	// ErrPortNotAllowed: the port is one of [Policy.Ports].
	ErrPortNotAllowed

	// ErrNotPublic: the address is public unicast: an IPv4 address outside the
	// special-purpose registry, or an IPv6 address inside 2000::/3 and outside it.
	ErrNotPublic
	// ErrAddressDenied: the address is neither in [Policy.DenyPrefixes] nor one
	// of this host's own.
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
	ErrNumericHost:       "a host that ends in a number must be an IPv4 address of four decimal numbers without leading zeros",
	ErrLocalhost:         "the host must not be localhost or a name under it",
	ErrZone:              "the address must not have a zone",
	ErrInvalidPort:       "the port must be a number from 1 to 65535 without leading zeros",
	ErrPortNotAllowed:    "the port must be one that this service calls",
	ErrNotPublic:         "the address must be a public unicast address",
	ErrAddressDenied:     "the address must be one that this service calls",
}

// Error returns the rule as a sentence, such as "the port must be a number from
// 1 to 65535 without leading zeros".
func (e PolicyError) Error() string {
	if e == 0 || int(e) >= len(policyErrorTexts) {
		return "unknown rule"
	}
	return policyErrorTexts[e]
}

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
