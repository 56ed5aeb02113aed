package egress_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"slices"
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
	{" https://example.com/", egress.ErrSpace},
	{"https://example.com/a b", egress.ErrSpace},
	{"https://example.com/\t", egress.ErrInvalidByte},
	{"https://example.com/\n", egress.ErrInvalidByte},
	{"https://example.com/\r", egress.ErrInvalidByte},
	{"https://example.com/\x00", egress.ErrInvalidByte},
	{"https://example.com/\x7f", egress.ErrInvalidByte},
	{"https://exämple.com/", egress.ErrInvalidByte},
	{"https://exa mple.com/", egress.ErrSpace},
	{"https://example.com/?a b", egress.ErrSpace},
	{"https://１２７.０.０.１/", egress.ErrInvalidByte}, // some clients map these to ASCII
	{"https://①②⑦.⓪.⓪.①/", egress.ErrInvalidByte},
	{"https://127。0。0。1/", egress.ErrInvalidByte},
	{"https://127.0.0.\u00ad1/", egress.ErrInvalidByte},
	{"https://ⓛocalhost/", egress.ErrInvalidByte},
	{"https://local\u200bhost/", egress.ErrInvalidByte},
	{"https://example.com:８０/", egress.ErrInvalidByte},
	{"https://example.com/\xff", egress.ErrInvalidByte},
	{`https:\\example.com\`, egress.ErrBackslash},
	{`https://example.com\@127.0.0.1/`, egress.ErrBackslash},
	{"https://example.com/#", egress.ErrFragment},
	{"https://example.com/#part", egress.ErrFragment},
	{"https://127.0.0.1#@example.com/", egress.ErrFragment},
	{"https://example.com/%zz", egress.ErrPercent},
	{"https://example.com/%", egress.ErrPercent},
	{"https://example.com/?%4", egress.ErrPercent},
	{"https://example.com/a,https://example.org/b", egress.ErrTwoURLs},
	{"https://example.com,https://example.org/", egress.ErrTwoURLs},
	{"https://example.com;HTTP://example.org/", egress.ErrTwoURLs},
	{"https://example.com/a https://example.org/", egress.ErrTwoURLs},
	{"https://example.com/a, https://example.org/", egress.ErrTwoURLs},
	{"https://example.com/a\nhttps://example.org/", egress.ErrTwoURLs},
	{"https://example.com/http://,http://example.org/", egress.ErrTwoURLs},
	{"https://example.com/a%20https://example.org/", egress.ErrTwoURLs},
	{"https://example.com/a,%20https://example.org/", egress.ErrTwoURLs},
	{"https://example.com/a%0d%0Ahttps://example.org/", egress.ErrTwoURLs},
	{"https://example.com/a%2Chttps://example.org/", egress.ErrTwoURLs},
	{"https://example.com/{id}", egress.ErrPlaceholder},
	{"https://{host}/", egress.ErrPlaceholder},
	{"https://example.com/?id={id}", egress.ErrPlaceholder},
	{"https://example.com/a|b", egress.ErrVerticalBar},
	{"https://example.com/?a|b", egress.ErrVerticalBar},
	{`https://example.com/"a"`, egress.ErrQuotationMark},
	{`https://example.com?"`, egress.ErrQuotationMark},
	{"https://example.com/<id>", egress.ErrAngleBracket},
	{"https://example.com/?<id>", egress.ErrAngleBracket},
	{"https://example.com/a^b", egress.ErrCaret},
	{"https://example.com/`a`", egress.ErrBacktick},
	{"https://example.com/a[0]", egress.ErrSquareBrackets},
	{"https://example.com/]?a", egress.ErrSquareBrackets},
	{"https://example.com%2f/", egress.ErrInvalidSyntax},
	{"https://a%2eb/", egress.ErrInvalidSyntax},
	{"https://a%0db/", egress.ErrInvalidSyntax},
	{"https://%31%32%37.0.0.1/", egress.ErrInvalidSyntax},
	{"https://[1.2.3.4]/", egress.ErrInvalidSyntax},
	{"https://[v1.fe80]/", egress.ErrInvalidSyntax},
	{"https://[]/", egress.ErrInvalidSyntax},
	{"https://[::1/", egress.ErrInvalidSyntax},
	{"https://[::1]a/", egress.ErrInvalidSyntax},
	{"https://a[::1]/", egress.ErrInvalidSyntax},
	{"https://[example.com]/", egress.ErrInvalidSyntax},
	{"https://::1/", egress.ErrInvalidSyntax},
	{"https://[fe80::1%eth0]/", egress.ErrInvalidSyntax},
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
	{`https://a"b/`, egress.ErrInvalidHostName},
	{"https://a!b/", egress.ErrInvalidHostName},
	{"https://a'b/", egress.ErrInvalidHostName},
	{"https://a(b)/", egress.ErrInvalidHostName},
	{"https://a~b/", egress.ErrInvalidHostName},
	{"https://exa$mple.com/", egress.ErrInvalidHostName},
	{"https://<example>.com/", egress.ErrInvalidHostName},
	{"https://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1a/", egress.ErrInvalidHostName},
	{"https://%EF%BC%91%EF%BC%92%EF%BC%97.%EF%BC%90.%EF%BC%90.%EF%BC%91/", egress.ErrInvalidHostName},
	{"https://127%E3%80%820%E3%80%820%E3%80%821/", egress.ErrInvalidHostName},
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
	{"https://1e3/", egress.ErrNumericHost},
	{"https://2130706433e0/", egress.ErrNumericHost},
	{"https://0b1/", egress.ErrNumericHost},
	{"https://1_0/", egress.ErrNumericHost},
	{"https://4receivers/", egress.ErrNumericHost},
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
	"https://hooks.example.com/services/T000/B000/XXXX?token=a%20b&x=[]!$&'()*+,;=:@/?",
	"https://example.com/!$&'()*+,;=:@-._~",
	"https://example.com/http://example.org/",
	"https://example.com/?next=a,https://example.org/;http://a",
	"https://example.com/%0d%0a%00%2f",
	"https://example.com//a/../b/./",
	"https://example.com/@user:pass@host",
	"https://receiver/",
	"https://_dmarc.exa_mple.com/",
	"https://xn--exmple-cua.com/",
	"https://localhost.example.com/",
	"https://notlocalhost/",
	"https://1.2.3.4a/",
	"https://1e3.example/",
	"https://receiver4/",
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
	seen := map[egress.PolicyError]bool{}
	for _, rule := range egress.PolicyErrors {
		if seen[rule] {
			t.Errorf("two rules have the text %q", rule)
		}
		seen[rule] = true
		for _, c := range []byte(rule.Error()) {
			if c < ' ' || c > '~' || c == '"' || c == '\\' {
				t.Errorf("%q in %q", c, rule)
			}
		}
	}
}

// parityPolicies returns policies that use every option.
func parityPolicies() map[string]*egress.Policy {
	return map[string]*egress.Policy{
		"strict":      newStrict(),
		"http":        {LocalAddrs: noAddresses, AllowHTTP: true},
		"development": egress.Development(),
		"internal": {
			LocalAddrs:    noAddresses,
			AllowHTTP:     true,
			AllowPrefixes: prefixes("10.0.0.0/8", "fd00::/8", "2001:db8::/32"),
			DenyPrefixes:  prefixes("10.0.0.0/16", "93.184.0.0/16"),
		},
		"ports": {LocalAddrs: noAddresses, AllowHTTP: true, Ports: []uint16{443, 8443}},
		"nat64": {LocalAddrs: noAddresses, AllowHTTP: true, AllowNAT64: true},
		"local": {AllowHTTP: true, LocalAddrs: func(context.Context) ([]netip.Addr, error) {
			return parseAddrs(publicAddr, "2606:2800:220:1:248:1893:25c8:1946"), nil
		}},
	}
}

// TestParityOfURLs passes the same URLs to Check, to the probers and to the transport:
// either all of them allow a URL, or none does.
func TestParityOfURLs(t *testing.T) {
	urls := slices.Clone(acceptances)
	for _, refusal := range refusals {
		urls = append(urls, refusal.url)
	}
	for _, url := range slices.Clone(urls) {
		if rest, ok := strings.CutPrefix(url, "https:"); ok {
			urls = append(urls, "http:"+rest)
		}
	}
	for name, policy := range parityPolicies() {
		t.Run(name, func(t *testing.T) {
			var network recorder
			policy.Dial = network.Dial
			policy.Resolver = resolveTo("8.8.8.8")
			prober, withHTTP, transport := newQuickTrio(t, policy)
			for _, url := range urls {
				checked := policy.Check(url)
				for name, probe := range map[string]*egress.Prober{"Probe": prober, "Probe with HTTP": withHTTP} {
					err := probe.Probe(t.Context(), "client", egress.NewURL(url))
					if called := network.take() != nil; called != (checked == nil) {
						t.Errorf("%s(%q) = %v, called %v; Check = %v", name, url, err, called, checked)
					}
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
				if err != nil || isAboutText(checked) || strings.HasSuffix(url, ":/") {
					continue // http.NewRequest has removed the reason
				}
				_, err = transport.RoundTrip(req)
				if called := network.take() != nil; called != (checked == nil) {
					t.Errorf("RoundTrip(%q) = %v, called %v; Check = %v", url, err, called, checked)
				}
				if checked != nil && !errors.Is(err, checked) {
					t.Errorf("RoundTrip(%q) = %v; Check = %v", url, err, checked)
				}
			}
		})
	}
}

// isAboutText reports whether an error is about bytes that http.NewRequest escapes or
// drops, as it drops the colon before an empty port.
func isAboutText(err error) bool {
	return errors.Is(err, egress.ErrInvalidLength) || errors.Is(err, egress.ErrInvalidByte) || errors.Is(err, egress.ErrSpace) || egress.IsAboutSyntax(err) ||
		errors.Is(err, egress.ErrBackslash) || errors.Is(err, egress.ErrFragment)
}

func newQuickTrio(t *testing.T, policy *egress.Policy) (prober, withHTTP *egress.Prober, transport *egress.Transport) {
	t.Helper()
	unlimited := egress.ProberOptions{ClientProbesPerMinute: 1_000_000}
	prober = newProber(t, policy, &unlimited)
	unlimited.HTTPProbe = must(egress.AnyResponse(http.MethodHead))
	return prober, newProber(t, policy, &unlimited), newTransport(t, policy)
}

// TestParityOfAddresses has a name resolve to every boundary address, and uses each as
// a literal in a URL.
func TestParityOfAddresses(t *testing.T) {
	addrs := append(boundaries(), parseAddrs(
		"8.8.8.8", publicAddr, "2606:2800:220:1:248:1893:25c8:1946", "::ffff:10.0.0.1", "::ffff:8.8.8.8",
		"64:ff9b::8.8.8.8", "64:ff9b::10.0.0.1", "fe80::1%eth0", "10.1.0.1", "10.0.0.1",
	)...)
	for name, policy := range parityPolicies() {
		t.Run(name, func(t *testing.T) {
			var network recorder
			var resolved netip.Addr
			policy.Dial = network.Dial
			policy.Resolver = resolverFunc(func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{resolved}, nil
			})
			prober, withHTTP, transport := newQuickTrio(t, policy)
			for _, addr := range addrs {
				resolved = addr
				want := policy.CheckAddr(addr) == nil
				calls := map[string]func(url string) error{
					"Probe":           func(url string) error { return prober.Probe(t.Context(), "c", egress.NewURL(url)) },
					"Probe with HTTP": func(url string) error { return withHTTP.Probe(t.Context(), "c", egress.NewURL(url)) },
					"RoundTrip":       func(url string) error { _, err := roundTrip(t, transport, url); return err },
				}
				for name, call := range calls {
					err := call("https://receiver.example/")
					if called := network.take() != nil; called != want {
						t.Errorf("%s of a name for %v: %v, called %v", name, addr, err, called)
					}
				}
				if addr.Zone() != "" {
					continue
				}
				literal := "https://" + netip.AddrPortFrom(addr, 443).String() + "/"
				if err := policy.Check(literal); (err == nil) != want {
					t.Errorf("Check(%q) = %v, CheckAddr allows %v", literal, err, want)
				}
			}
		})
	}
}

// TestURLsGoOutAsTyped: for each byte in a path and in a query, a URL with it either arrives as it
// was typed, or is refused by the rule for that byte.
func TestURLsGoOutAsTyped(t *testing.T) {
	const inPath = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~!$&'()*+,;=:@/?" // RFC 3986
	rules := map[byte]egress.PolicyError{
		' ': egress.ErrSpace, '\\': egress.ErrBackslash, '#': egress.ErrFragment, '{': egress.ErrPlaceholder, '}': egress.ErrPlaceholder,
		'|': egress.ErrVerticalBar, '"': egress.ErrQuotationMark, '<': egress.ErrAngleBracket, '>': egress.ErrAngleBracket,
		'^': egress.ErrCaret, '`': egress.ErrBacktick, '%': egress.ErrPercent,
		'[': egress.ErrSquareBrackets, ']': egress.ErrSquareBrackets,
	}
	arrived := make(chan string, 1)
	receiver := serve(t, nil, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { arrived <- r.RequestURI }))
	policy := newLoopback(nil)
	client := newClient(t, policy)
	_, port, _ := strings.Cut(receiver.Addr().String(), ":")
	base := "http://" + receiverName + ":" + port
	check := func(target string, want error) {
		t.Helper()
		if err := policy.Check(base + target); !errors.Is(err, want) {
			t.Errorf("Check(%q) = %v, want %v", target, err, want)
			return
		}
		if want != nil {
			return
		}
		if err := post(t.Context(), client, base+target, nil, readAll); err != nil {
			t.Fatal(err)
		}
		if got := <-arrived; got != target {
			t.Errorf("%q arrives as %q", target, got)
		}
	}
	for c := range 256 {
		text := string([]byte{byte(c)})
		for _, place := range []string{"/%s", "/a%sb", "/a/%s?b", "/?%s", "/?a%sb"} {
			target := strings.Replace(place, "%s", text, 1)
			rule, hasRule := rules[byte(c)]
			isBracket := rule == egress.ErrSquareBrackets
			switch inQuery := strings.HasPrefix(place, "/?"); {
			case isBracket && inQuery, strings.Contains(inPath, text):
				check(target, nil)
			case hasRule:
				check(target, rule)
			default:
				check(target, egress.ErrInvalidByte)
			}
		}
		check(fmt.Sprintf("/%%%02x?%%%02X", c, c), nil)
	}
	// Random ones, of what's most likely to go wrong.
	pieces := []string{"a", "/", "//", "/.", "/..", "?", "%2f", "%2F", "%41", "%", "%e4", ",", ";", "http://", "https://", "[", "]", "@", ":", "+", "*", "'", "~", "&", "="}
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var target strings.Builder
		target.WriteString("/")
		for range random.IntN(8) {
			target.WriteString(pieces[random.IntN(len(pieces))])
		}
		if err := policy.Check(base + target.String()); err == nil {
			check(target.String(), nil)
		} else if !slices.Contains([]error{egress.ErrPercent, egress.ErrSquareBrackets, egress.ErrTwoURLs}, err) {
			t.Errorf("Check(%q) = %v", target.String(), err)
		}
	}
}

// TestStoredURLs: a URL that was accepted before there was a rule for its characters is still
// called. A URL that was never accepted isn't.
func TestStoredURLs(t *testing.T) {
	var network recorder
	policy := newStrict()
	policy.Resolver, policy.Dial = resolveTo(publicAddr), network.Dial
	transport := newTransport(t, policy)
	for _, url := range []string{
		"https://example.com/{id}", "https://example.com/a|b", `https://example.com/"a"`, "https://example.com/<a>?<b>",
		"https://example.com/^`[0]", "https://example.com/a,https://example.org/b", "https://example.com/?%4",
	} {
		if policy.Check(url) == nil {
			t.Errorf("Check allows %s", url)
		}
		if err := policy.CheckStored(t.Context(), url); err != nil {
			t.Errorf("CheckStored(%q) = %v", url, err)
		}
		if egress.NewURL(url).Origin() != "https://example.com:443" {
			t.Errorf("%s has no origin", url)
		}
		_, _ = roundTrip(t, transport, url)
		if network.take() == nil {
			t.Errorf("%s isn't called", url)
		}
	}
	for _, refusal := range refusals {
		err := policy.CheckStored(t.Context(), refusal.url)
		if !egress.IsAboutSyntax(refusal.rule) && !errors.Is(err, refusal.rule) {
			t.Errorf("CheckStored(%q) = %v, want %v", refusal.url, err, refusal.rule)
		}
	}
}

// TestInternationalName: the error for a name in other letters says how to write it, and that works.
func TestInternationalName(t *testing.T) {
	var policy egress.Policy
	err := policy.Check("https://b\u00fccher.example/in")
	if !errors.Is(err, egress.ErrInvalidByte) || !strings.Contains(err.Error(), "punycode, such as xn--bcher-kva.example") {
		t.Errorf("got %v", err)
	}
	if err := policy.Check("https://xn--bcher-kva.example/in"); err != nil {
		t.Error(err)
	}
}
