package egress_test

import (
	"errors"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// newStrict is the zero policy, but with addresses of its own that do not depend
// on the machine.
func newStrict() *egress.Policy { return &egress.Policy{OwnAddresses: noAddresses} }

func repeat(label string, n int) string { return strings.Repeat(label, n) }

// refusals has at least one URL for every rule that a text can break.
var refusals = []struct {
	url  string
	rule egress.Rule
}{
	{"", egress.RuleLength},
	{"https://example.com/" + repeat("a", 2029), egress.RuleLength},
	{" https://example.com/", egress.RuleBytes},
	{"https://example.com/a b", egress.RuleBytes},
	{"https://example.com/\t", egress.RuleBytes},
	{"https://example.com/\n", egress.RuleBytes},
	{"https://example.com/\r", egress.RuleBytes},
	{"https://example.com/\x00", egress.RuleBytes},
	{"https://example.com/\x7f", egress.RuleBytes},
	{"https://exämple.com/", egress.RuleBytes},
	{"https://example.com/\xff", egress.RuleBytes},
	{`https:\\example.com\`, egress.RuleBackslash},
	{`https://example.com\@127.0.0.1/`, egress.RuleBackslash},
	{"https://example.com/#", egress.RuleFragment},
	{"https://example.com/#part", egress.RuleFragment},
	{"https://127.0.0.1#@example.com/", egress.RuleFragment},
	{"https://example.com/%zz", egress.RuleSyntax},
	{"https://example.com%2f/", egress.RuleSyntax},
	{"https://%31%32%37.0.0.1/", egress.RuleSyntax},
	{"https://[1.2.3.4]/", egress.RuleSyntax},
	{"https://[v1.fe80]/", egress.RuleSyntax},
	{"https://[]/", egress.RuleSyntax},
	{"https://[::1/", egress.RuleSyntax},
	{"https://[::1]a/", egress.RuleSyntax},
	{"https://a[::1]/", egress.RuleSyntax},
	{"https://[example.com]/", egress.RuleSyntax},
	{"https://::1/", egress.RuleSyntax},
	{"https://example.com:-1/", egress.RuleSyntax},
	{"https://example.com:+80/", egress.RuleSyntax},
	{"https://example.com:0x50/", egress.RuleSyntax},
	{"https://example.com:80:80/", egress.RuleSyntax},
	{"http://example.com/", egress.RuleHTTPS},
	{"ftp://example.com/", egress.RuleHTTPS},
	{"//example.com/", egress.RuleHTTPS},
	{"/path", egress.RuleHTTPS},
	{"example.com/path", egress.RuleHTTPS},
	{"file:///etc/passwd", egress.RuleHTTPS},
	{"https://user@example.com/", egress.RuleUserinfo},
	{"https://user:secret@example.com/", egress.RuleUserinfo},
	{"https://@example.com/", egress.RuleUserinfo},
	{"https://a@b@c/", egress.RuleUserinfo},
	{"https://example.com:443@127.0.0.1/", egress.RuleUserinfo},
	{"https:example.com", egress.RuleHost},
	{"https:127.0.0.1", egress.RuleHost},
	{"https:/example.com/", egress.RuleHost},
	{"https:///example.com/", egress.RuleHost},
	{"https://", egress.RuleHost},
	{"https:", egress.RuleHost},
	{"https://:443/", egress.RuleHost},
	{"https://?query", egress.RuleHost},
	{"https://.example.com/", egress.RuleName},
	{"https://example..com/", egress.RuleName},
	{"https://-example.com/", egress.RuleName},
	{"https://example-.com/", egress.RuleName},
	{"https://exa*mple.com/", egress.RuleName},
	{"https://a,b/", egress.RuleName},
	{"https://exa$mple.com/", egress.RuleName},
	{"https://<example>.com/", egress.RuleName},
	{"https://%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1a/", egress.RuleName},
	{"https://ex%C3%A4mple.com/", egress.RuleName},
	{"https://exa%C2%ADmple.com/", egress.RuleName},
	{"https://" + repeat("a", 64) + ".com/", egress.RuleName},
	{"https://" + repeat("abcdefghi.", 25) + "abcd/", egress.RuleNameLength},
	{"https://example.com./", egress.RuleTrailingDot},
	{"https://localhost./", egress.RuleTrailingDot},
	{"https://127.1/", egress.RuleNumericHost},
	{"https://127.0.1/", egress.RuleNumericHost},
	{"https://0177.0.0.1/", egress.RuleNumericHost},
	{"https://127.0.0.01/", egress.RuleNumericHost},
	{"https://2130706433/", egress.RuleNumericHost},
	{"https://017700000001/", egress.RuleNumericHost},
	{"https://0/", egress.RuleNumericHost},
	{"https://0x7f.1/", egress.RuleNumericHost},
	{"https://0x7f000001/", egress.RuleNumericHost},
	{"https://0X7F000001/", egress.RuleNumericHost},
	{"https://0x/", egress.RuleNumericHost},
	{"https://foo.0x4/", egress.RuleNumericHost},
	{"https://foo.123/", egress.RuleNumericHost},
	{"https://1.2.3.4.5/", egress.RuleNumericHost},
	{"https://256.256.256.256/", egress.RuleNumericHost},
	{"https://127.0.0.1./", egress.RuleNumericHost},
	{"https://localhost/", egress.RuleLocalhost},
	{"https://LOCALHOST/", egress.RuleLocalhost},
	{"https://LocalHost:8443/", egress.RuleLocalhost},
	{"https://api.localhost/", egress.RuleLocalhost},
	{"https://api.LOCALHOST/", egress.RuleLocalhost},
	{"https://[fe80::1%25eth0]/", egress.RuleZone},
	{"https://[::1%25lo]/", egress.RuleZone},
	{"https://[2606:2800:220:1::1%25eth0]/", egress.RuleZone},
	{"https://[::ffff:93.184.216.34%25eth0]/", egress.RuleZone},
	{"https://example.com:/", egress.RulePort},
	{"https://example.com:0/", egress.RulePort},
	{"https://example.com:080/", egress.RulePort},
	{"https://example.com:00443/", egress.RulePort},
	{"https://example.com:65536/", egress.RulePort},
	{"https://example.com:99999999999999999999/", egress.RulePort},
	{"https://[2606:2800:220:1::1]:0/", egress.RulePort},
	{"https://127.0.0.1/", egress.RulePublic},
	{"https://0.0.0.0/", egress.RulePublic},
	{"https://169.254.169.254/latest/meta-data/", egress.RulePublic},
	{"https://10.0.0.1/", egress.RulePublic},
	{"https://255.255.255.255/", egress.RulePublic},
	{"https://[::]/", egress.RulePublic},
	{"https://[::1]/", egress.RulePublic},
	{"https://[::ffff:7f00:1]/", egress.RulePublic},
	{"https://[::ffff:127.0.0.1]/", egress.RulePublic},
	{"https://[::127.0.0.1]/", egress.RulePublic},
	{"https://[64:ff9b::808:808]/", egress.RulePublic},
	{"https://[fd00:ec2::254]/", egress.RulePublic},
	{"https://[fe80::1]/", egress.RulePublic},
}

func TestCheckNamesTheRule(t *testing.T) {
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
		{"https beside http", &egress.Policy{AllowHTTP: true}, "https://example.com/", nil},
		{"neither", &egress.Policy{AllowHTTP: true}, "ftp://example.com/", egress.RuleScheme},
		{"port", &egress.Policy{Ports: []uint16{443, 8443}}, "https://example.com:8443/", nil},
		{"default port", &egress.Policy{Ports: []uint16{8443}}, "https://example.com/", egress.RulePortAllowed},
		{"default port of http", &egress.Policy{AllowHTTP: true, Ports: []uint16{80}}, "http://example.com/", nil},
		{"other port", &egress.Policy{Ports: []uint16{443}}, "https://example.com:8443/", egress.RulePortAllowed},
		{"development", egress.Development(), "http://127.0.0.1:8080/", nil},
		{"development, IPv6", egress.Development(), "http://[::1]:8080/", nil},
		{"development, mapped", egress.Development(), "http://[::ffff:127.0.0.1]:8080/", nil},
		{"development, name", egress.Development(), "http://localhost:8080/", nil},
		{"development, name under", egress.Development(), "http://api.LocalHost:8080/", nil},
		{"development, private", egress.Development(), "http://10.0.0.1/", egress.RulePublic},
		{"development, numeric", egress.Development(), "http://127.1/", egress.RuleNumericHost},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if err := test.policy.Check(test.url); !errors.Is(err, test.want) {
				t.Errorf("Check(%q) = %v, want %v", test.url, err, test.want)
			}
		})
	}
}

// TestRuleTexts holds every rule to what RFC 6749 section 5.2 allows in an
// error_description, and to a text of its own.
func TestRuleTexts(t *testing.T) {
	seen := map[string]egress.Rule{}
	for rule := egress.RuleLength; rule <= egress.RuleAddressAllowed; rule++ {
		text := rule.Error()
		if other, ok := seen[text]; ok {
			t.Errorf("rules %d and %d share the text %q", rule, other, text)
		}
		seen[text] = rule
		for _, c := range []byte(text) {
			if c < ' ' || c > '~' || c == '"' || c == '\\' {
				t.Errorf("rule %d: %q in %q", rule, c, text)
			}
		}
	}
	for _, none := range []egress.Rule{0, egress.RuleAddressAllowed + 1} {
		if _, ok := seen[none.Error()]; ok {
			t.Errorf("%d has the text of a rule", none)
		}
	}
}

func TestCheckAllocatesNoMoreThanParsing(t *testing.T) {
	policy := newStrict()
	_ = policy.Check("https://93.184.216.34/") // reads the own addresses
	for _, url := range []string{benchName, benchIPv4, benchIPv6} {
		parse := testing.AllocsPerRun(100, func() { parseURL(url) })
		check := testing.AllocsPerRun(100, func() { _ = policy.Check(url) })
		if check > parse {
			t.Errorf("Check(%q) allocates %v times, url.Parse %v times", url, check, parse)
		}
	}
}
