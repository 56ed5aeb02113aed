package egress_test

import (
	"errors"
	"net/url"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestOddURLs shows beside each other what net/url makes of a URL and what the
// policy says. Where net/url finds a host, some resolver or HTTP client of this
// world finds 127.0.0.1 in it, or no host at all.
func TestOddURLs(t *testing.T) {
	const failure = "(error)"
	tests := []struct {
		url  string
		host string // url.URL.Hostname, or failure
		rule egress.PolicyError
	}{
		// Numbers that are addresses to a resolver of the C library.
		{"http://0x7f.1/", "0x7f.1", egress.ErrNumericHost},
		{"http://0x7f000001/", "0x7f000001", egress.ErrNumericHost},
		{"http://2130706433/", "2130706433", egress.ErrNumericHost},
		{"http://127.1/", "127.1", egress.ErrNumericHost},
		{"http://127.0.1/", "127.0.1", egress.ErrNumericHost},
		{"http://0177.0.0.1/", "0177.0.0.1", egress.ErrNumericHost},
		{"http://127.0.0.01/", "127.0.0.01", egress.ErrNumericHost},
		{"http://017700000001/", "017700000001", egress.ErrNumericHost},
		{"http://0/", "0", egress.ErrNumericHost},

		// Literal addresses that reach the local machine.
		{"http://0.0.0.0/", "0.0.0.0", egress.ErrNotPublic},
		{"http://[::]/", "::", egress.ErrNotPublic},
		{"http://[::ffff:7f00:1]/", "::ffff:7f00:1", egress.ErrNotPublic},
		{"http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1", egress.ErrNotPublic},
		{"http://[::127.0.0.1]/", "::127.0.0.1", egress.ErrNotPublic},
		{"http://[::1%25lo]/", "::1%lo", egress.ErrZone},

		// What net/url refuses by itself.
		{"http://[fe80::1%eth0]/", failure, egress.ErrInvalidSyntax},
		{"http://[1.2.3.4]/", failure, egress.ErrInvalidSyntax},
		{"http://[v1.fe80]/", failure, egress.ErrInvalidSyntax},
		{"http://[]/", failure, egress.ErrInvalidSyntax},
		{"http://::1/", failure, egress.ErrInvalidSyntax},
		{"http://[::1]a/", failure, egress.ErrInvalidSyntax},
		{"http://a[::1]/", failure, egress.ErrInvalidSyntax},

		// Characters that an HTTP client maps to ASCII before it dials.
		{"http://１２７.０.０.１/", "１２７.０.０.１", egress.ErrInvalidByte},
		{"http://①②⑦.⓪.⓪.①/", "①②⑦.⓪.⓪.①", egress.ErrInvalidByte},
		{"http://127。0。0。1/", "127。0。0。1", egress.ErrInvalidByte},
		{"http://127.0.0.\u00ad1/", "127.0.0.\u00ad1", egress.ErrInvalidByte},
		{"http://ⓛocalhost/", "ⓛocalhost", egress.ErrInvalidByte},
		{"http://local\u200bhost/", "local\u200bhost", egress.ErrInvalidByte},
		{"http://%EF%BC%91%EF%BC%92%EF%BC%97.%EF%BC%90.%EF%BC%90.%EF%BC%91/", "１２７.０.０.１", egress.ErrInvalidHostName},
		{"http://127%E3%80%820%E3%80%820%E3%80%821/", "127。0。0。1", egress.ErrInvalidHostName},

		// A dot at the end.
		{"http://127.0.0.1./", "127.0.0.1.", egress.ErrNumericHost},
		{"http://localhost./", "localhost.", egress.ErrTrailingDot},

		// Where the host begins and ends.
		{"http://a@b@c/", "c", egress.ErrUserinfo},
		{`http://example.com\@127.0.0.1/`, failure, egress.ErrBackslash},
		{"http://127.0.0.1#@example.com/", "127.0.0.1", egress.ErrFragment},
		{`http:\\127.0.0.1\`, "", egress.ErrBackslash},
		{"http:127.0.0.1", "", egress.ErrNoHost},
		{"http:/127.0.0.1/", "", egress.ErrNoHost},
		{"http:///x", "", egress.ErrNoHost},
		{"https://", "", egress.ErrNoHost},

		// Control characters, spaces and escapes.
		{"http://example.com/\t", failure, egress.ErrInvalidByte},
		{"http://example.com/\n", failure, egress.ErrInvalidByte},
		{"http://example.com/\r", failure, egress.ErrInvalidByte},
		{"http://example.com/\x00", failure, egress.ErrInvalidByte},
		{"http://example.com/\x7f", failure, egress.ErrInvalidByte},
		{"http://exa mple.com/", failure, egress.ErrInvalidByte},
		{"http://example.com/a b", "example.com", egress.ErrInvalidByte},
		{"http://example.com/?a b", "example.com", egress.ErrInvalidByte},
		{"http://example.com/%0d%0a", "example.com", 0},
		{"http://%31/", failure, egress.ErrInvalidSyntax},
		{"http://a%2eb/", failure, egress.ErrInvalidSyntax},
		{"http://a%2fb/", failure, egress.ErrInvalidSyntax},
		{"http://a%0db/", failure, egress.ErrInvalidSyntax},
		{"https://example.com/#", "example.com", egress.ErrFragment},

		// Ports.
		{"http://example.com:0/", "example.com", egress.ErrInvalidPort},
		{"http://example.com:65536/", "example.com", egress.ErrInvalidPort},
		{"http://example.com:12345678901234567890/", "example.com", egress.ErrInvalidPort},
		{"http://example.com:080/", "example.com", egress.ErrInvalidPort},
		{"http://example.com:/", "example.com", egress.ErrInvalidPort},
		{"http://example.com:-1/", failure, egress.ErrInvalidSyntax},
		{"http://example.com:+80/", failure, egress.ErrInvalidSyntax},
		{"http://example.com:0x50/", failure, egress.ErrInvalidSyntax},
		{"http://example.com:８０/", failure, egress.ErrInvalidByte},
		{"http://example.com:80:80/", failure, egress.ErrInvalidSyntax},

		// Names that are none.
		{"http://foo.0x4/", "foo.0x4", egress.ErrNumericHost},
		{"http://1.2.3.4.5/", "1.2.3.4.5", egress.ErrNumericHost},
		{"http://256.256.256.256/", "256.256.256.256", egress.ErrNumericHost},
		{"http://a<b/", "a<b", egress.ErrInvalidHostName},
		{"http://a>b/", "a>b", egress.ErrInvalidHostName},
		{`http://a"b/`, `a"b`, egress.ErrInvalidHostName},
		{"http://a*b/", "a*b", egress.ErrInvalidHostName},
		{"http://a,b/", "a,b", egress.ErrInvalidHostName},
		{"http://a!b/", "a!b", egress.ErrInvalidHostName},
		{"http://a$b/", "a$b", egress.ErrInvalidHostName},
		{"http://a'b/", "a'b", egress.ErrInvalidHostName},
		{"http://a(b)/", "a(b)", egress.ErrInvalidHostName},
		{"http://a~b/", "a~b", egress.ErrInvalidHostName},
	}
	policy := &egress.Policy{AllowHTTP: true}
	for _, test := range tests {
		host := failure
		if u, err := url.Parse(test.url); err == nil {
			host = u.Hostname()
		}
		if host != test.host {
			t.Errorf("url.Parse(%q) finds host %q, want %q", test.url, host, test.host)
		}
		var want error
		if test.rule != 0 {
			want = test.rule
		}
		if err := policy.Check(test.url); !errors.Is(err, want) {
			t.Errorf("Check(%q) = %v, want %v", test.url, err, want)
		}
	}
}
