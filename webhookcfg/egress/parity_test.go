package egress_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

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
		"local": {AllowHTTP: true, LocalAddrs: func() ([]netip.Addr, error) {
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
	return errors.Is(err, egress.ErrInvalidLength) || errors.Is(err, egress.ErrInvalidByte) ||
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
