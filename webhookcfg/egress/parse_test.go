package egress_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// newStrict returns the zero policy, but independent of the addresses of the machine.
func newStrict() *egress.Policy { return &egress.Policy{LocalAddrs: noAddresses} }

func repeat(label string, n int) string { return strings.Repeat(label, n) }

// refusals has at least one URL for every PolicyError that the text of a URL can give.
var refusals = []struct {
	url  string
	rule egress.PolicyError
}{
	{"", egress.ErrInvalidLength},
	{"https://example.com/" + repeat("a", 2029), egress.ErrInvalidLength},
	{" https://example.com/", egress.ErrInvalidByte},
	{"https://example.com/a b", egress.ErrInvalidByte},
	{"https://example.com/\t", egress.ErrInvalidByte},
	{"https://example.com/\n", egress.ErrInvalidByte},
	{"https://example.com/\r", egress.ErrInvalidByte},
	{"https://example.com/\x00", egress.ErrInvalidByte},
	{"https://example.com/\x7f", egress.ErrInvalidByte},
	{"https://exämple.com/", egress.ErrInvalidByte},
	{"https://example.com/\xff", egress.ErrInvalidByte},
	{`https:\\example.com\`, egress.ErrBackslash},
	{`https://example.com\@127.0.0.1/`, egress.ErrBackslash},
	{"https://example.com/#", egress.ErrFragment},
	{"https://example.com/#part", egress.ErrFragment},
	{"https://127.0.0.1#@example.com/", egress.ErrFragment},
	{"https://example.com/%zz", egress.ErrInvalidSyntax},
	{"https://example.com%2f/", egress.ErrInvalidSyntax},
	{"https://%31%32%37.0.0.1/", egress.ErrInvalidSyntax},
	{"https://[1.2.3.4]/", egress.ErrInvalidSyntax},
	{"https://[v1.fe80]/", egress.ErrInvalidSyntax},
	{"https://[]/", egress.ErrInvalidSyntax},
	{"https://[::1/", egress.ErrInvalidSyntax},
	{"https://[::1]a/", egress.ErrInvalidSyntax},
	{"https://a[::1]/", egress.ErrInvalidSyntax},
	{"https://[example.com]/", egress.ErrInvalidSyntax},
	{"https://::1/", egress.ErrInvalidSyntax},
	{"https://example.com:-1/", egress.ErrInvalidSyntax},
	{"https://example.com:+80/", egress.ErrInvalidSyntax},
	{"https://example.com:0x50/", egress.ErrInvalidSyntax},
	{"https://example.com:80:80/", egress.ErrInvalidSyntax},
	{"http://example.com/", egress.ErrNotHTTPS},
	{"ftp://example.com/", egress.ErrNotHTTPS},
	{"//example.com/", egress.ErrNotHTTPS},
	{"/path", egress.ErrNotHTTPS},
	{"example.com/path", egress.ErrNotHTTPS},
	{"file:///etc/passwd", egress.ErrNotHTTPS},
	{"https://user@example.com/", egress.ErrUserinfo},
	{"https://user:secret@example.com/", egress.ErrUserinfo},
	{"https://@example.com/", egress.ErrUserinfo},
	{"https://a@b@c/", egress.ErrUserinfo},
	{"https://example.com:443@127.0.0.1/", egress.ErrUserinfo},
	{"https:example.com", egress.ErrNoHost},
	{"https:127.0.0.1", egress.ErrNoHost},
	{"https:/example.com/", egress.ErrNoHost},
	{"https:///example.com/", egress.ErrNoHost},
	{"https://", egress.ErrNoHost},
	{"https:", egress.ErrNoHost},
	{"https://:443/", egress.ErrNoHost},
	{"https://?query", egress.ErrNoHost},
	{"https://.example.com/", egress.ErrInvalidHostName},
	{"https://example..com/", egress.ErrInvalidHostName},
	{"https://-example.com/", egress.ErrInvalidHostName},
	{"https://example-.com/", egress.ErrInvalidHostName},
	{"https://exa*mple.com/", egress.ErrInvalidHostName},
	{"https://a,b/", egress.ErrInvalidHostName},
	{"https://exa$mple.com/", egress.ErrInvalidHostName},
	{"https://<example>.com/", egress.ErrInvalidHostName},
	{"https://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1a/", egress.ErrInvalidHostName},
	{"https://ex%C3%A4mple.com/", egress.ErrInvalidHostName},
	{"https://exa%C2%ADmple.com/", egress.ErrInvalidHostName},
	{"https://" + repeat("a", 64) + ".com/", egress.ErrInvalidHostName},
	{"https://" + repeat("abcdefghi.", 25) + "abcd/", egress.ErrHostNameTooLong},
	{"https://example.com./", egress.ErrTrailingDot},
	{"https://localhost./", egress.ErrTrailingDot},
	{"https://127.1/", egress.ErrNumericHost},
	{"https://127.0.1/", egress.ErrNumericHost},
	{"https://0177.0.0.1/", egress.ErrNumericHost},
	{"https://127.0.0.01/", egress.ErrNumericHost},
	{"https://2130706433/", egress.ErrNumericHost},
	{"https://017700000001/", egress.ErrNumericHost},
	{"https://0/", egress.ErrNumericHost},
	{"https://0x7f.1/", egress.ErrNumericHost},
	{"https://0x7f000001/", egress.ErrNumericHost},
	{"https://0X7F000001/", egress.ErrNumericHost},
	{"https://0x/", egress.ErrNumericHost},
	{"https://foo.0x4/", egress.ErrNumericHost},
	{"https://foo.123/", egress.ErrNumericHost},
	{"https://1.2.3.4.5/", egress.ErrNumericHost},
	{"https://256.256.256.256/", egress.ErrNumericHost},
	{"https://127.0.0.1./", egress.ErrNumericHost},
	{"https://localhost/", egress.ErrLocalhost},
	{"https://LOCALHOST/", egress.ErrLocalhost},
	{"https://LocalHost:8443/", egress.ErrLocalhost},
	{"https://api.localhost/", egress.ErrLocalhost},
	{"https://api.LOCALHOST/", egress.ErrLocalhost},
	{"https://[fe80::1%25eth0]/", egress.ErrZone},
	{"https://[::1%25lo]/", egress.ErrZone},
	{"https://[2606:2800:220:1::1%25eth0]/", egress.ErrZone},
	{"https://[::ffff:93.184.216.34%25eth0]/", egress.ErrZone},
	{"https://example.com:/", egress.ErrInvalidPort},
	{"https://example.com:0/", egress.ErrInvalidPort},
	{"https://example.com:080/", egress.ErrInvalidPort},
	{"https://example.com:00443/", egress.ErrInvalidPort},
	{"https://example.com:65536/", egress.ErrInvalidPort},
	{"https://example.com:99999999999999999999/", egress.ErrInvalidPort},
	{"https://[2606:2800:220:1::1]:0/", egress.ErrInvalidPort},
	{"https://127.0.0.1/", egress.ErrNotPublic},
	{"https://0.0.0.0/", egress.ErrNotPublic},
	{"https://169.254.169.254/latest/meta-data/", egress.ErrNotPublic},
	{"https://10.0.0.1/", egress.ErrNotPublic},
	{"https://255.255.255.255/", egress.ErrNotPublic},
	{"https://[::]/", egress.ErrNotPublic},
	{"https://[::1]/", egress.ErrNotPublic},
	{"https://[::ffff:7f00:1]/", egress.ErrNotPublic},
	{"https://[::ffff:127.0.0.1]/", egress.ErrNotPublic},
	{"https://[::127.0.0.1]/", egress.ErrNotPublic},
	{"https://[64:ff9b::808:808]/", egress.ErrNotPublic},
	{"https://[fd00:ec2::254]/", egress.ErrNotPublic},
	{"https://[fe80::1]/", egress.ErrNotPublic},
}

func TestCheckRefuses(t *testing.T) {
	policy := newStrict()
	for _, test := range refusals {
		if err := policy.Check(test.url); !errors.Is(err, test.rule) {
			t.Errorf("Check(%q) = %v, want %v", test.url, err, test.rule)
		}
	}
}

var acceptances = []string{
	"https://example.com",
	"https://example.com/",
	"HTTPS://Example.COM/",
	"https://example.com?query",
	"https://example.com:1/",
	"https://example.com:443/",
	"https://example.com:65535/",
	"https://hooks.example.com/services/T000/B000/XXXX?token=a%20b&x=[]{}|^`\"<>",
	"https://example.com/%0d%0a%00%2f",
	"https://example.com//a/../b/./",
	"https://example.com/@user:pass@host",
	"https://receiver/",
	"https://_dmarc.exa_mple.com/",
	"https://xn--exmple-cua.com/",
	"https://localhost.example.com/",
	"https://notlocalhost/",
	"https://1.2.3.4a/",
	"https://123.example/",
	"https://0x7f.example/",
	"https://" + repeat("a", 63) + ".com/",
	"https://" + repeat("abcdefghi.", 25) + "abc/",
	"https://example.com/" + repeat("a", 2028),
	"https://93.184.216.34/",
	"https://93.184.216.34:8443/",
	"https://[2606:2800:220:1:248:1893:25c8:1946]/",
	"https://[2606:2800:220:1:248:1893:25c8:1946]:8443/",
	"https://[::ffff:93.184.216.34]/",
}

func TestCheckAccepts(t *testing.T) {
	policy := newStrict()
	for _, url := range acceptances {
		if err := policy.Check(url); err != nil {
			t.Errorf("Check(%q) = %v", url, err)
		}
	}
}

func TestCheckOptions(t *testing.T) {
	tests := []struct {
		name   string
		policy *egress.Policy
		url    string
		want   error
	}{
		{"http", &egress.Policy{AllowHTTP: true}, "http://example.com/", nil},
		{"https in addition to http", &egress.Policy{AllowHTTP: true}, "https://example.com/", nil},
		{"neither", &egress.Policy{AllowHTTP: true}, "ftp://example.com/", egress.ErrUnsupportedScheme},
		{"port", &egress.Policy{Ports: []uint16{443, 8443}}, "https://example.com:8443/", nil},
		{"default port", &egress.Policy{Ports: []uint16{8443}}, "https://example.com/", egress.ErrPortNotAllowed},
		{"default port of http", &egress.Policy{AllowHTTP: true, Ports: []uint16{80}}, "http://example.com/", nil},
		{"other port", &egress.Policy{Ports: []uint16{443}}, "https://example.com:8443/", egress.ErrPortNotAllowed},
		{"development", egress.Development(), "http://127.0.0.1:8080/", nil},
		{"development, IPv6", egress.Development(), "http://[::1]:8080/", nil},
		{"development, mapped", egress.Development(), "http://[::ffff:127.0.0.1]:8080/", nil},
		{"development, name", egress.Development(), "http://localhost:8080/", nil},
		{"development, name under", egress.Development(), "http://api.LocalHost:8080/", nil},
		{"development, private", egress.Development(), "http://10.0.0.1/", egress.ErrNotPublic},
		{"development, numeric", egress.Development(), "http://127.1/", egress.ErrNumericHost},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := test.policy.Check(test.url); !errors.Is(err, test.want) {
				t.Errorf("Check(%q) = %v, want %v", test.url, err, test.want)
			}
		})
	}
}

// TestPolicyErrorTexts checks that every text is allowed in an error_description (RFC
// 6749 section 5.2), and is unique.
func TestPolicyErrorTexts(t *testing.T) {
	seen := map[string]egress.PolicyError{}
	for rule := egress.ErrInvalidLength; rule <= egress.ErrAddressDenied; rule++ {
		text := rule.Error()
		if other, ok := seen[text]; ok {
			t.Errorf("errors %d and %d share the text %q", rule, other, text)
		}
		seen[text] = rule
		for _, c := range []byte(text) {
			if c < ' ' || c > '~' || c == '"' || c == '\\' {
				t.Errorf("error %d: %q in %q", rule, c, text)
			}
		}
	}
	for _, none := range []egress.PolicyError{0, egress.ErrAddressDenied + 1} {
		if _, ok := seen[none.Error()]; ok {
			t.Errorf("%d has the text of an error", none)
		}
	}
}

func TestCheckAllocatesNoMoreThanParsing(t *testing.T) {
	policy := newStrict()
	_ = policy.Check("https://93.184.216.34/") // reads the local addresses
	for _, url := range []string{benchName, benchIPv4, benchIPv6} {
		parse := testing.AllocsPerRun(100, func() { parseURL(url) })
		check := testing.AllocsPerRun(100, func() { _ = policy.Check(url) })
		if check > parse {
			t.Errorf("Check(%q) allocates %v times, url.Parse %v times", url, check, parse)
		}
	}
}

// TestOddURLs compares the host that net/url finds in a URL with the error of the
// policy. Some resolver or HTTP client finds 127.0.0.1 in such a host, or another host,
// or none.
func TestOddURLs(t *testing.T) {
	const failure = "(error)"
	tests := []struct {
		url  string
		host string // url.URL.Hostname, or failure
		rule egress.PolicyError
	}{
		// Numbers that the resolver of the C library treats as addresses.
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

		// URLs that net/url refuses.
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

		// Trailing dots.
		{"http://127.0.0.1./", "127.0.0.1.", egress.ErrNumericHost},
		{"http://localhost./", "localhost.", egress.ErrTrailingDot},

		// Boundaries of the host.
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

		// Invalid names.
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
