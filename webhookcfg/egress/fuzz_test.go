package egress_test

import (
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// FuzzCheck checks the policy's promises about every URL that it accepts.
func FuzzCheck(f *testing.F) {
	for _, text := range acceptances {
		f.Add(text)
	}
	for _, refusal := range refusals {
		f.Add(refusal.url)
	}
	var network recorder
	policy := newStrict()
	policy.AllowHTTP, policy.Dial = true, network.Dial
	looked := &lastLookup{}
	policy.Resolver = looked
	transport, err := policy.Transport(nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		shown := egress.NewURL(text).String()
		if policy.Check(text) != nil {
			return
		}
		u, err := url.Parse(text)
		if err != nil {
			t.Fatalf("accepted %q, which url.Parse refuses: %v", text, err)
		}
		_, rest, _ := strings.Cut(text, "://")
		if !strings.HasPrefix(rest, u.Host) || shown != text[:len(text)-len(rest)]+u.Host {
			t.Errorf("%q has the host %q and is printed as %q", text, u.Host, shown)
		}
		if u.User != nil || u.Opaque != "" || strings.ContainsAny(text, " #\\") {
			t.Errorf("accepted %q", text)
		}
		addr, err := netip.ParseAddr(u.Hostname())
		if err == nil && (isSpecial(addr) || addr.Zone() != "") {
			t.Errorf("accepted %q, which is not public", text)
		}
		if again := policy.Check(text); again != nil {
			t.Errorf("accepted %q, then %v", text, again)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, text, nil)
		if err != nil {
			t.Fatalf("accepted %q, which http.NewRequest refuses: %v", text, err)
		}
		looked.host = ""
		if _, err = transport.RoundTrip(req); err == nil {
			t.Fatal("a connection to nowhere")
		}
		dialled := network.take()
		if addr.IsValid() {
			if len(dialled) != 1 || netip.MustParseAddrPort(dialled[0]).Addr() != addr.Unmap() {
				t.Errorf("%q dials %v", text, dialled)
			}
		} else if looked.host != u.Hostname() || len(dialled) != 1 {
			t.Errorf("%q looks up %q and dials %v", text, looked.host, dialled)
		}
	})
}

// FuzzCheckAddr compares CheckAddr with the model, which searches all entries.
func FuzzCheckAddr(f *testing.F) {
	for _, addr := range boundaries() {
		f.Add(addr.AsSlice())
	}
	policy := newStrict()
	f.Fuzz(func(t *testing.T, bytes []byte) {
		addr, ok := netip.AddrFromSlice(bytes)
		if !ok {
			return
		}
		if allowed := policy.CheckAddr(addr) == nil; allowed == isSpecial(addr) {
			t.Errorf("CheckAddr(%v): allowed %v", addr, allowed)
		}
	})
}
