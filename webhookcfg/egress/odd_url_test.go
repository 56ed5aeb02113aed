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
		rule egress.Rule
	}{
		// Numbers that are addresses to a resolver of the C library.
		{"http://0x7f.1/", "0x7f.1", egress.RuleNumericHost},
		{"http://0x7f000001/", "0x7f000001", egress.RuleNumericHost},
		{"http://2130706433/", "2130706433", egress.RuleNumericHost},
		{"http://127.1/", "127.1", egress.RuleNumericHost},
		{"http://127.0.1/", "127.0.1", egress.RuleNumericHost},
		{"http://0177.0.0.1/", "0177.0.0.1", egress.RuleNumericHost},
		{"http://127.0.0.01/", "127.0.0.01", egress.RuleNumericHost},
		{"http://017700000001/", "017700000001", egress.RuleNumericHost},
		{"http://0/", "0", egress.RuleNumericHost},

		// Literal addresses that reach the local machine.
		{"http://0.0.0.0/", "0.0.0.0", egress.RulePublic},
		{"http://[::]/", "::", egress.RulePublic},
		{"http://[::ffff:7f00:1]/", "::ffff:7f00:1", egress.RulePublic},
		{"http://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1", egress.RulePublic},
		{"http://[::127.0.0.1]/", "::127.0.0.1", egress.RulePublic},
		{"http://[::1%25lo]/", "::1%lo", egress.RuleZone},

		// What net/url refuses by itself.
		{"http://[fe80::1%eth0]/", failure, egress.RuleSyntax},
		{"http://[1.2.3.4]/", failure, egress.RuleSyntax},
		{"http://[v1.fe80]/", failure, egress.RuleSyntax},
		{"http://[]/", failure, egress.RuleSyntax},
		{"http://::1/", failure, egress.RuleSyntax},
		{"http://[::1]a/", failure, egress.RuleSyntax},
		{"http://a[::1]/", failure, egress.RuleSyntax},

		// Characters that an HTTP client maps to ASCII before it dials.
		{"http://１２７.０.０.１/", "１２７.０.０.１", egress.RuleBytes},
		{"http://①②⑦.⓪.⓪.①/", "①②⑦.⓪.⓪.①", egress.RuleBytes},
		{"http://127。0。0。1/", "127。0。0。1", egress.RuleBytes},
		{"http://127.0.0.\u00ad1/", "127.0.0.\u00ad1", egress.RuleBytes},
		{"http://ⓛocalhost/", "ⓛocalhost", egress.RuleBytes},
		{"http://local\u200bhost/", "local\u200bhost", egress.RuleBytes},
		{"http://%EF%BC%91%EF%BC%92%EF%BC%97.%EF%BC%90.%EF%BC%90.%EF%BC%91/", "１２７.０.０.１", egress.RuleName},
		{"http://127%E3%80%820%E3%80%820%E3%80%821/", "127。0。0。1", egress.RuleName},

		// A dot at the end.
		{"http://127.0.0.1./", "127.0.0.1.", egress.RuleNumericHost},
		{"http://localhost./", "localhost.", egress.RuleTrailingDot},

		// Where the host begins and ends.
		{"http://a@b@c/", "c", egress.RuleUserinfo},
		{`http://example.com\@127.0.0.1/`, failure, egress.RuleBackslash},
		{"http://127.0.0.1#@example.com/", "127.0.0.1", egress.RuleFragment},
		{`http:\\127.0.0.1\`, "", egress.RuleBackslash},
		{"http:127.0.0.1", "", egress.RuleHost},
		{"http:/127.0.0.1/", "", egress.RuleHost},
		{"http:///x", "", egress.RuleHost},
		{"https://", "", egress.RuleHost},

		// Control characters, spaces and escapes.
		{"http://example.com/\t", failure, egress.RuleBytes},
		{"http://example.com/\n", failure, egress.RuleBytes},
		{"http://example.com/\r", failure, egress.RuleBytes},
		{"http://example.com/\x00", failure, egress.RuleBytes},
		{"http://example.com/\x7f", failure, egress.RuleBytes},
		{"http://exa mple.com/", failure, egress.RuleBytes},
		{"http://example.com/a b", "example.com", egress.RuleBytes},
		{"http://example.com/?a b", "example.com", egress.RuleBytes},
		{"http://example.com/%0d%0a", "example.com", 0},
		{"http://%31/", failure, egress.RuleSyntax},
		{"http://a%2eb/", failure, egress.RuleSyntax},
		{"http://a%2fb/", failure, egress.RuleSyntax},
		{"http://a%0db/", failure, egress.RuleSyntax},
		{"https://example.com/#", "example.com", egress.RuleFragment},

		// Ports.
		{"http://example.com:0/", "example.com", egress.RulePort},
		{"http://example.com:65536/", "example.com", egress.RulePort},
		{"http://example.com:12345678901234567890/", "example.com", egress.RulePort},
		{"http://example.com:080/", "example.com", egress.RulePort},
		{"http://example.com:/", "example.com", egress.RulePort},
		{"http://example.com:-1/", failure, egress.RuleSyntax},
		{"http://example.com:+80/", failure, egress.RuleSyntax},
		{"http://example.com:0x50/", failure, egress.RuleSyntax},
		{"http://example.com:８０/", failure, egress.RuleBytes},
		{"http://example.com:80:80/", failure, egress.RuleSyntax},

		// Names that are none.
		{"http://foo.0x4/", "foo.0x4", egress.RuleNumericHost},
		{"http://1.2.3.4.5/", "1.2.3.4.5", egress.RuleNumericHost},
		{"http://256.256.256.256/", "256.256.256.256", egress.RuleNumericHost},
		{"http://a<b/", "a<b", egress.RuleName},
		{"http://a>b/", "a>b", egress.RuleName},
		{`http://a"b/`, `a"b`, egress.RuleName},
		{"http://a*b/", "a*b", egress.RuleName},
		{"http://a,b/", "a,b", egress.RuleName},
		{"http://a!b/", "a!b", egress.RuleName},
		{"http://a$b/", "a$b", egress.RuleName},
		{"http://a'b/", "a'b", egress.RuleName},
		{"http://a(b)/", "a(b)", egress.RuleName},
		{"http://a~b/", "a~b", egress.RuleName},
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
