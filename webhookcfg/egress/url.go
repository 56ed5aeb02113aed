package egress

import (
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"strings"
)

// URL is the address of a webhook. Such an address is a credential: many
// receivers carry a token in its path or query. A URL therefore prints as its
// scheme, host and port however it is printed, logged or marshalled, alone or
// deep inside other values; [URL.Reveal] is the one way to the whole text.
//
// The zero value is no URL. A URL is immutable and safe for concurrent use. It
// cannot be compared with ==; use [URL.Equal].
type URL struct {
	_ [0]func()
	// A pointer, because fmt prints the unexported fields of a struct without
	// asking their methods, but prints a nested pointer as a mere address.
	text *string
}

// NewURL wraps text as it is, without judging it: [Policy.Check] does that.
// The empty text gives the zero URL.
func NewURL(text string) URL {
	if text == "" {
		return URL{}
	}
	return URL{text: &text}
}

// Reveal returns the exact text that the URL was made from, "" for the zero URL.
func (u URL) Reveal() string {
	if u.text == nil {
		return ""
	}
	return *u.text
}

// IsZero reports whether u is no URL at all.
func (u URL) IsZero() bool { return u.text == nil }

// Equal reports whether u and other have the same text, byte for byte.
func (u URL) Equal(other URL) bool {
	return u.text == other.text || u.Reveal() == other.Reveal()
}

// String returns scheme, host and port, such as "https://example.com:8443"; ""
// for the zero URL, and "redacted" where the text does not begin like an http or
// https URL with a host.
func (u URL) String() string {
	if u.IsZero() {
		return ""
	}
	scheme, rest, _ := strings.Cut(*u.text, "://")
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

// isSafeToPrint keeps out what only stands where a host should: a part of a secret
// with a slash in it, or bytes that a log must not hold.
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

// Format implements [fmt.Formatter]: every verb writes what String returns.
func (u URL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, u.String()) }

// LogValue implements [slog.LogValuer] with what String returns.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// MarshalText implements [encoding.TextMarshaler] with what String returns. What
// is to be stored must be revealed on purpose.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }
