package egress_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

func prefixes(texts ...string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestCheckAddr(t *testing.T) {
	const public, zone, listed = egress.ErrNotPublic, egress.ErrZone, egress.ErrAddressDenied
	internal := &egress.Policy{
		LocalAddrs:    noAddresses,
		AllowPrefixes: prefixes("10.1.0.0/16", "fd00:1::/32"),
		DenyPrefixes:  prefixes("10.1.2.0/24", "93.184.216.0/24", "2606:2800::/32"),
	}
	nat64 := &egress.Policy{
		LocalAddrs:    noAddresses,
		AllowNAT64:    true,
		AllowPrefixes: prefixes("10.1.0.0/16"),
		DenyPrefixes:  prefixes("93.184.216.0/24", "64:ff9b::101:100/120"),
	}
	tests := []struct {
		name   string
		policy *egress.Policy
		addr   string
		want   egress.PolicyError
	}{
		{"public", newStrict(), "93.184.216.34", ""},
		{"public, IPv6", newStrict(), "2606:2800:220:1::1", ""},
		{"mapped public", newStrict(), "::ffff:93.184.216.34", ""},
		{"mapped private", newStrict(), "::ffff:10.0.0.1", public},
		{"zone", newStrict(), "fe80::1%eth0", zone},
		{"zone on a public address", newStrict(), "2606:2800:220:1::1%eth0", zone},
		{"zone on a mapped address", newStrict(), "::ffff:93.184.216.34%eth0", zone},

		{"allowed prefix", internal, "10.1.0.1", ""},
		{"allowed prefix, mapped", internal, "::ffff:10.1.0.1", ""},
		{"allowed prefix, IPv6", internal, "fd00:1::1", ""},
		{"next to the allowed prefix", internal, "10.2.0.1", public},
		{"next to the allowed prefix, IPv6", internal, "fd00:2::1", public},
		{"zone in an allowed prefix", internal, "fd00:1::1%eth0", zone},
		{"denied inside allowed", internal, "10.1.2.3", listed},
		{"denied inside allowed, mapped", internal, "::ffff:10.1.2.3", listed},
		{"denied public", internal, "93.184.216.34", listed},
		{"denied public, IPv6", internal, "2606:2800:220:1::1", listed},
		{"other public address", internal, "8.8.8.8", ""},

		{"NAT64 without the option", newStrict(), "64:ff9b::8.8.8.8", public},
		{"NAT64", nat64, "64:ff9b::8.8.8.8", ""},
		{"NAT64 of loopback", nat64, "64:ff9b::127.0.0.1", public},
		{"NAT64 of private", nat64, "64:ff9b::10.0.0.1", public},
		{"NAT64 of allowed", nat64, "64:ff9b::10.1.0.1", ""},
		{"NAT64 of denied", nat64, "64:ff9b::93.184.216.34", listed},
		{"NAT64 denied as such", nat64, "64:ff9b::1.1.1.1", listed},
		{"NAT64 of local use", nat64, "64:ff9b:1::8.8.8.8", public},
		{"next to NAT64", nat64, "64:ff9b:0:0:0:1:808:808", public},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			checkAddr(t, test.policy, netip.MustParseAddr(test.addr), test.want)
		})
	}
	t.Run("invalid", func(t *testing.T) {
		checkAddr(t, newStrict(), netip.Addr{}, public)
	})
}

// checkAddr checks that CheckAddr returns the given error, or nil for "".
func checkAddr(t *testing.T, policy *egress.Policy, addr netip.Addr, rule egress.PolicyError) {
	t.Helper()
	var want error
	if rule != "" {
		want = rule
	}
	if err := policy.CheckAddr(addr); !errors.Is(err, want) {
		t.Errorf("CheckAddr(%v) = %v, want %v", addr, err, want)
	}
}

func TestLocalAddrsAreRefused(t *testing.T) {
	local := parseAddrs("93.184.216.34", "::ffff:93.184.216.35", "2606:2800:220:1::1%eth0")
	policy := &egress.Policy{
		LocalAddrs:    func(context.Context) ([]netip.Addr, error) { return local, nil },
		AllowPrefixes: prefixes("2606:2800:220:2::/64"),
		AllowNAT64:    true,
	}
	const refused = egress.ErrAddressDenied
	for text, want := range map[string]egress.PolicyError{
		"93.184.216.34":          refused,
		"93.184.216.35":          refused,
		"93.184.216.36":          "",
		"::ffff:93.184.216.34":   refused,
		"64:ff9b::93.184.216.34": refused,
		"2606:2800:220:1::1":     refused,
		"2606:2800:220:1::2":     "",
	} {
		checkAddr(t, policy, netip.MustParseAddr(text), want)
	}
	if err := policy.Check("https://93.184.216.34/"); !errors.Is(err, refused) {
		t.Errorf("Check of a local address = %v", err)
	}
}

func TestLocalAddrCanBeAllowed(t *testing.T) {
	policy := &egress.Policy{
		LocalAddrs:    func(context.Context) ([]netip.Addr, error) { return parseAddrs(publicAddr), nil },
		AllowPrefixes: prefixes(publicAddr + "/32"),
	}
	checkAddr(t, policy, netip.MustParseAddr(publicAddr), "")
}

func TestLocalAddrsAreCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		local, reads := publicAddr, 0
		policy := &egress.Policy{LocalAddrs: func(context.Context) ([]netip.Addr, error) {
			reads++
			return parseAddrs(local), nil
		}}
		addr, other := netip.MustParseAddr(publicAddr), netip.MustParseAddr("8.8.8.8")
		for range 3 {
			checkAddr(t, policy, addr, egress.ErrAddressDenied)
			checkAddr(t, policy, other, "")
		}
		local = "8.8.8.8"
		time.Sleep(10*time.Second - time.Nanosecond)
		checkAddr(t, policy, addr, egress.ErrAddressDenied)
		if reads != 1 {
			t.Errorf("%d reads in ten seconds", reads)
		}
		time.Sleep(time.Nanosecond)
		checkAddr(t, policy, addr, "")
		checkAddr(t, policy, other, egress.ErrAddressDenied)
		if reads != 2 {
			t.Errorf("%d reads after ten seconds", reads)
		}
	})
}

// TestUnknownLocalAddrs: an address that we can't check isn't called. That doesn't tell
// anything about the target, and the other rules decide as before.
func TestUnknownLocalAddrs(t *testing.T) {
	const secret = "/t0ken"
	errLocal := errors.New("no netlink")
	network, broken := new(recorder), true
	policy := &egress.Policy{
		LocalAddrs: func(context.Context) ([]netip.Addr, error) {
			if broken {
				return nil, errLocal
			}
			return nil, nil
		},
		AllowHTTP:     true,
		AllowPrefixes: prefixes("8.8.8.8/32"),
		DenyPrefixes:  prefixes("1.1.1.1/32"),
		AllowNAT64:    true,
		Resolver:      resolveTo(publicAddr),
		Dial:          network.Dial,
	}
	addr := netip.MustParseAddr(publicAddr)
	calls := map[string]func(host string) error{
		"CheckAddr":    func(string) error { return policy.CheckAddr(addr) },
		"Check":        func(host string) error { return policy.Check("http://" + host + secret) },
		"CheckContext": func(host string) error { return policy.CheckContext(t.Context(), "http://"+host+secret) },
		"DialContext":  func(host string) error { return second(policy.DialContext(t.Context(), "tcp", host+":80")) },
		"RoundTrip":    func(host string) error { return second(roundTrip(t, newTransport(t, policy), "http://"+host+secret)) },
		"Probe":        func(host string) error { return probe(t, policy, "http://"+host+secret) },
		"Probe with an HTTPProbe": func(host string) error {
			return probeWith(t, policy, must(egress.AnyResponse(http.MethodGet)), "http://"+host+secret)
		},
	}
	hosts := []string{publicAddr, "[64:ff9b::" + publicAddr + "]", "receiver.example"}
	for _, host := range hosts {
		for name, call := range calls {
			if host == "receiver.example" && strings.HasPrefix(name, "Check") {
				continue
			}
			err := call(host)
			if !errors.Is(err, egress.ErrUnavailable) || !errors.Is(err, errLocal) || reasonOf(err) != "" || strings.Contains(fmt.Sprint(err), secret) {
				t.Errorf("%s of %s = %v", name, host, err)
			}
		}
	}
	if dialled := network.take(); dialled != nil {
		t.Errorf("dialled %q", dialled)
	}
	for text, want := range map[string]egress.PolicyError{
		"8.8.8.8":  "",
		"1.1.1.1":  egress.ErrAddressDenied,
		"10.0.0.1": egress.ErrNotPublic,
	} {
		checkAddr(t, policy, netip.MustParseAddr(text), want)
	}
	broken = false
	checkAddr(t, policy, addr, "")
}

// hangingLocalAddrs returns its list, or hangs until its context ends.
type hangingLocalAddrs struct {
	hang           atomic.Bool
	running, calls atomic.Int32
}

func (l *hangingLocalAddrs) list(ctx context.Context) ([]netip.Addr, error) {
	l.calls.Add(1)
	defer l.running.Add(-1)
	if l.running.Add(1) > 1 {
		return nil, errors.New("two calls at the same time")
	}
	if l.hang.Load() {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return parseAddrs(publicAddr), nil
}

// TestHangingLocalAddrs: a list that doesn't arrive delays checks only a little, and the last
// one is used until it's a minute old.
func TestHangingLocalAddrs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var local hangingLocalAddrs
		policy := &egress.Policy{LocalAddrs: local.list}
		// check has five goroutines check an address of this host and another one, and
		// returns how long it took.
		check := func(own, other error) time.Duration {
			start := time.Now()
			var checks sync.WaitGroup
			for range 5 {
				checks.Go(func() {
					for addr, want := range map[string]error{publicAddr: own, "8.8.8.8": other} {
						if err := policy.CheckAddr(netip.MustParseAddr(addr)); !errors.Is(err, want) {
							t.Errorf("CheckAddr(%v) = %v, want %v", addr, err, want)
						}
					}
				})
			}
			checks.Wait()
			return time.Since(start)
		}
		check(egress.ErrAddressDenied, nil)
		local.hang.Store(true)
		time.Sleep(10 * time.Second)
		if took := check(egress.ErrAddressDenied, nil); took > time.Second {
			t.Errorf("checks with a list of ten seconds ago took %v", took)
		}
		if calls := local.calls.Load(); calls != 2 {
			t.Errorf("%d calls, want one per list", calls)
		}
		time.Sleep(48 * time.Second)
		check(egress.ErrAddressDenied, nil)
		time.Sleep(2 * time.Second)
		if took := check(egress.ErrUnavailable, egress.ErrUnavailable); took > 6*time.Second {
			t.Errorf("two checks without a list took %v", took)
		}
		local.hang.Store(false)
		time.Sleep(3 * time.Second)
		check(egress.ErrAddressDenied, nil)
	})
}

// TestHangingLocalAddrsAreNoTimeout: a probe and a call of a name have enough time to find
// out that its addresses can't be checked, even if it has many.
func TestHangingLocalAddrsAreNoTimeout(t *testing.T) {
	for _, addrs := range [][]string{{publicAddr}, slices.Repeat([]string{publicAddr}, 8)} {
		synctest.Test(t, func(t *testing.T) {
			var local hangingLocalAddrs
			local.hang.Store(true)
			network := new(recorder)
			policy := &egress.Policy{LocalAddrs: local.list, Resolver: resolveTo(addrs...), Dial: network.Dial}
			prober := newProber(t, policy, nil)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // the default of a probe
			defer cancel()
			if err := prober.Probe(ctx, "client", egress.NewURL("https://receiver.example/")); !errors.Is(err, egress.ErrUnavailable) {
				t.Errorf("Probe of %d addresses = %v", len(addrs), err)
			}
			if _, err := policy.DialContext(t.Context(), "tcp", "receiver.example:443"); !errors.Is(err, egress.ErrUnavailable) {
				t.Errorf("DialContext with %d addresses = %v", len(addrs), err)
			}
			if dialled := network.take(); dialled != nil {
				t.Errorf("dialled %q", dialled)
			}
			time.Sleep(3 * time.Second) // the deadline of LocalAddrs
		})
	}
}

// TestContextEndsWhileLocalAddrsHang: calls with a context stop waiting when it ends.
func TestContextEndsWhileLocalAddrsHang(t *testing.T) {
	const url = "https://" + publicAddr + "/"
	synctest.Test(t, func(t *testing.T) {
		var local hangingLocalAddrs
		local.hang.Store(true)
		policy := &egress.Policy{LocalAddrs: local.list, AllowNAT64: true, Resolver: resolveTo(publicAddr), Dial: new(recorder).Dial}
		prober, transport := newProber(t, policy, nil), newTransport(t, policy)
		for name, call := range map[string]func(ctx context.Context) error{
			"CheckContext": func(ctx context.Context) error { return policy.CheckContext(ctx, url) },
			"Probe":        func(ctx context.Context) error { return prober.Probe(ctx, "client", egress.NewURL(url)) },
			"RoundTrip": func(ctx context.Context) error {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				if err == nil {
					_, err = transport.RoundTrip(req)
				}
				return err
			},
			"DialContext of an address": func(ctx context.Context) error {
				_, err := policy.DialContext(ctx, "tcp", publicAddr+":443")
				return err
			},
			"DialContext of an embedded address": func(ctx context.Context) error {
				_, err := policy.DialContext(ctx, "tcp", "[64:ff9b::"+publicAddr+"]:443")
				return err
			},
			"DialContext of a name": func(ctx context.Context) error {
				_, err := policy.DialContext(ctx, "tcp", "receiver.example:443")
				return err
			},
		} {
			start := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := call(ctx)
			cancel()
			if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
				t.Errorf("%s with a deadline in one second: %v after %v", name, err, took)
			}
			time.Sleep(3 * time.Second) // the deadline of LocalAddrs
		}
	})
}

func TestInvalidPolicies(t *testing.T) {
	mapped := netip.PrefixFrom(netip.MustParseAddr("::ffff:10.0.0.0"), 104)
	for name, bad := range map[string]netip.Prefix{"invalid": {}, "mapped": mapped, "bits of a host": netip.MustParsePrefix("10.1.2.3/8")} {
		t.Run(name, func(t *testing.T) {
			denying := &egress.Policy{LocalAddrs: noAddresses, DenyPrefixes: []netip.Prefix{bad}}
			allowing := &egress.Policy{LocalAddrs: noAddresses, AllowPrefixes: []netip.Prefix{bad}}
			checkAddr(t, denying, netip.MustParseAddr(publicAddr), egress.ErrAddressDenied)
			checkAddr(t, allowing, netip.MustParseAddr("10.0.0.1"), egress.ErrNotPublic)
			for _, policy := range []*egress.Policy{denying, allowing} {
				refusedByConstructors(t, policy)
			}
		})
	}
	for _, prefix := range []string{"0.0.0.0/0", "0.0.0.0/1", "224.0.0.0/3", "::/0", "8000::/1", "fc00::/6"} {
		t.Run(prefix, func(t *testing.T) {
			wide := &egress.Policy{LocalAddrs: noAddresses, AllowPrefixes: prefixes("10.1.0.0/16", prefix)}
			checkAddr(t, wide, netip.MustParsePrefix(prefix).Addr(), egress.ErrNotPublic)
			checkAddr(t, wide, netip.MustParseAddr("10.1.0.1"), "")
			refusedByConstructors(t, wide)
		})
	}
	t.Run("port 0", func(t *testing.T) {
		refusedByConstructors(t, &egress.Policy{Ports: []uint16{443, 0}})
	})
}

// TestAllAddressesCanBeDenied: denied prefixes can be wide, unlike allowed ones.
func TestAllAddressesCanBeDenied(t *testing.T) {
	policy := &egress.Policy{LocalAddrs: noAddresses, DenyPrefixes: prefixes("::/0")}
	if err := policy.Validate(); err != nil {
		t.Error(err)
	}
	checkAddr(t, policy, netip.MustParseAddr("2606:2800:220:1::1"), egress.ErrAddressDenied)
	checkAddr(t, policy, netip.MustParseAddr(publicAddr), "")
}

func refusedByConstructors(t *testing.T, policy *egress.Policy) {
	t.Helper()
	if policy.Validate() == nil {
		t.Error("Validate() = nil")
	}
	if _, err := policy.Prober(nil); err == nil {
		t.Error("Prober() gives no error")
	}
	if _, err := policy.Transport(nil); err == nil {
		t.Error("Transport() gives no error")
	}
	if _, err := policy.Client(nil); err == nil {
		t.Error("Client() gives no error")
	}
}

// TestChangesAfterConstruction: probers and transports keep the policy that they were made
// with, even if you change it through its slices.
func TestChangesAfterConstruction(t *testing.T) {
	var network recorder
	policy := &egress.Policy{
		LocalAddrs:    noAddresses,
		AllowPrefixes: prefixes("10.1.0.0/16"),
		DenyPrefixes:  prefixes(publicAddr + "/32"),
		Ports:         []uint16{443},
		Dial:          network.Dial,
	}
	prober, transport := newProber(t, policy, nil), newTransport(t, policy)
	policy.AllowHTTP, policy.AllowNAT64 = true, true
	policy.AllowPrefixes[0], policy.DenyPrefixes[0] = netip.MustParsePrefix("10.2.0.0/16"), netip.MustParsePrefix("10.1.0.0/16")
	policy.Ports[0] = 8443
	for url, want := range map[string]error{
		"http://8.8.8.8:443/":         egress.ErrNotHTTPS,
		"https://8.8.8.8:8443/":       egress.ErrPortNotAllowed,
		"https://10.2.0.1/":           egress.ErrNotPublic,
		"https://[64:ff9b::8.8.8.8]/": egress.ErrNotPublic,
		"https://" + publicAddr + "/": egress.ErrAddressDenied,
		"https://10.1.0.1/":           errDialled,
	} {
		if err := prober.Probe(t.Context(), "client", egress.NewURL(url)); !errors.Is(err, want) {
			t.Errorf("Probe(%q) = %v, want %v", url, err, want)
		}
		if _, err := roundTrip(t, transport, url); !errors.Is(err, want) {
			t.Errorf("RoundTrip(%q) = %v, want %v", url, err, want)
		}
	}
}

// TestAuthorityAddedAfterConstruction: the certificate pool is copied, too.
func TestAuthorityAddedAfterConstruction(t *testing.T) {
	ca := newAuthority(t)
	receiver := serve(t, ca, http.NotFoundHandler())
	policy := newLoopback(nil)
	policy.RootCAs = x509.NewCertPool()
	prober := newProber(t, policy, &egress.ProberOptions{Timeout: time.Minute})
	policy.RootCAs.AddCert(ca.cert)
	target := receiver.at("https", receiverName)
	if err := prober.Probe(t.Context(), "client", egress.NewURL(target)); reasonOf(err) != egress.ReasonUnknownAuthority {
		t.Errorf("Probe of a prober from before = %v", err)
	}
	if err := probe(t, policy, target); err != nil {
		t.Errorf("Probe of a prober from after = %v", err)
	}
}
