package egress

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"

	"example.com/go-webhookcfg/internal/redact"
)

// URL is a webhook URL. Its path or query often carries a token, so treat it as a credential.
// When you format, log or marshal it, by itself or inside other values, you get scheme, host
// and port only. Only [URL.Reveal] returns the whole text.
//
// The zero value means no URL. A URL is immutable and safe for concurrent use. You can't
// compare URLs with ==. Call [URL.Equal].
type URL struct{ text redact.Hidden }

// NewURL returns a URL with the given text. It doesn't check it: call [Policy.Check] for
// that. The empty text gives the zero URL.
func NewURL(text string) URL {
	if text == "" {
		return URL{}
	}
	return URL{redact.Hide(text)}
}

// Reveal returns the text that you passed to [NewURL], and "" for the zero URL.
func (u URL) Reveal() string { return u.text.Reveal() }

// IsZero reports whether u is the zero URL.
func (u URL) IsZero() bool { return u.text.IsZero() }

// Equal reports whether u and other have the same text, byte for byte.
func (u URL) Equal(other URL) bool { return u.Reveal() == other.Reveal() }

// Origin returns scheme, host and port in their canonical form, such as
// "https://example.com:443": a name is in lower case, an address is always spelled the same, and
// the port is there even if it's the default one. So two URLs of one server have the same
// origin. It's "" if no policy allows the URL.
func (u URL) Origin() string {
	if checkBytes(u.Reveal()) != nil {
		return ""
	}
	parsed, err := url.Parse(u.Reveal())
	if err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" {
		return ""
	}
	to, err := destinationOf(parsed)
	if err != nil {
		return ""
	}
	return parsed.Scheme + "://" + to.String()
}

// String returns scheme, host and port, such as "https://example.com:8443". It returns "" for
// the zero URL, and "redacted" if the text doesn't start like an http or https URL with a
// host.
func (u URL) String() string {
	if u.IsZero() {
		return ""
	}
	scheme, rest, _ := strings.Cut(u.Reveal(), "://")
	authority := rest
	if end := strings.IndexAny(rest, "/?#\\"); end >= 0 {
		authority = rest[:end]
	}
	host := authority[strings.LastIndexByte(authority, '@')+1:]
	if !isSafeToPrint(scheme, host) {
		return "redacted"
	}
	return scheme + "://" + host
}

// isSafeToPrint reports whether hostPort is a host and port. Otherwise it could be part of a
// secret that contains a slash, or have bytes that don't belong in a log.
func isSafeToPrint(scheme, hostPort string) bool {
	if !strings.EqualFold(scheme, "https") && !strings.EqualFold(scheme, "http") {
		return false
	}
	host, port, bracketed := cutHost(hostPort)
	if port != "" && (port[0] != ':' || !isNumber(port[1:])) {
		return false
	}
	if bracketed {
		_, err := netip.ParseAddr(host)
		return err == nil && !strings.Contains(host, "%")
	}
	return host != "" && checkName(host) == nil
}

// Format implements [fmt.Formatter]. Every verb writes the result of String.
func (u URL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// LogValue implements [slog.LogValuer]. It returns the result of String.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText implements [encoding.TextMarshaler]. It returns the result of String, so don't
// store a URL with it. Call Reveal instead.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }
