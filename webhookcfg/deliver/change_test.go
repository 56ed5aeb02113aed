package deliver_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestChangedBetweenAttempts: what a client changes while a message waits applies to the
// next attempt.
func TestChangedBetweenAttempts(t *testing.T) {
	first, second := newReceiver(t, false, status(500)), newReceiver(t, false, status(200))
	st := configured(t, first.URL+secretPath)
	keys := keyring{deliver.GenerateKey()}
	s := newSender(t, st, keys, nil)
	apply := func(change webhookcfg.Change) {
		t.Helper()
		if err := st.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	check(t, "first", s.Send(t.Context(), "acme", "e1", message), deliver.Failed, deliver.ReasonStatus)

	set(t, st, second.URL+secretPath)
	check(t, "set", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	if len(first.received()) != 1 || len(second.received()) != 1 {
		t.Errorf("%d and %d requests", len(first.received()), len(second.received()))
	}

	apply(webhookcfg.UnsetChange("acme", webhookcfg.Entity("e1")))
	check(t, "unset", s.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonOff)
	check(t, "another entity", s.Send(t.Context(), "acme", "e2", message), deliver.Delivered, "")

	apply(webhookcfg.SetChange("acme", webhookcfg.Entity("e1"), egress.NewURL(second.URL+secretPath)))
	old := keys[0]
	keys[0] = deliver.GenerateKey()
	check(t, "rotated", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	got := second.received()
	if last := got[len(got)-1]; verify(last, old) || !verify(last, keys[0]) {
		t.Error("the message was not signed with the new key")
	}
	if got[0].header.Get("Webhook-Id") != got[len(got)-1].header.Get("Webhook-Id") || string(got[0].body) != string(got[len(got)-1].body) {
		t.Error("the attempts differ in their ID or body")
	}
}

// TestStricterPolicy: a URL that was allowed when it was set is refused by a policy that is
// stricter now, for its text or for its address.
func TestStricterPolicy(t *testing.T) {
	r := newReceiver(t, false, status(200))
	st := configured(t, r.URL+secretPath)
	keys := keyring{deliver.GenerateKey()}
	check(t, "before", newSender(t, st, keys, nil).Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	for name, stricter := range map[string]*egress.Policy{
		"https":   {AllowPrefixes: egress.Development().AllowPrefixes},
		"port":    {AllowHTTP: true, AllowPrefixes: egress.Development().AllowPrefixes, Ports: []uint16{443}},
		"address": {AllowHTTP: true},
	} {
		result := newSender(t, st, keys, &deliver.Options{Policy: stricter}).Send(t.Context(), "acme", "e1", message)
		check(t, name, result, deliver.Undeliverable, deliver.ReasonPolicy)
		if _, ok := errors.AsType[egress.PolicyError](result.Err); !ok {
			t.Errorf("%s: %v", name, result.Err)
		}
	}
	// Changes of a policy do not apply to a sender that has it already.
	changed := egress.Development()
	s := newSender(t, st, keys, &deliver.Options{Policy: changed})
	changed.AllowHTTP = false
	check(t, "changed", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	// A URL that no handler checked is refused for its text, too.
	for _, url := range []string{"https://example.com/a b", "https://example.com/\\a", "https://example.com/#", "https:///t0ken", "t0ken", "https://example.com/" + strings.Repeat("x", 2048)} {
		result := newSender(t, configured(t, url), keys, nil).Send(t.Context(), "acme", "e1", message)
		check(t, url, result, deliver.Undeliverable, deliver.ReasonPolicy)
	}
	if n := len(r.received()); n != 2 {
		t.Errorf("%d requests", n)
	}
}

// TestMovedName: a name that resolves to this machine by the next attempt is not called.
// The receiver has failed as far as the client may know.
func TestMovedName(t *testing.T) {
	r := newReceiver(t, false, status(200))
	public, loopback := netip.MustParseAddr("93.184.216.34"), netip.MustParseAddr("127.0.0.1")
	known := names{"example.com": {public}}
	var dialled []string
	s := newSender(t, configured(t, "http://example.com"+secretPath), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: &egress.Policy{
		AllowHTTP: true,
		Resolver:  known,
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled = append(dialled, address)
			return new(net.Dialer).DialContext(ctx, network, r.Listener.Addr().String())
		},
	}})
	check(t, "public", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	s.CloseIdleConnections()

	known["example.com"] = []netip.Addr{loopback}
	result := s.Send(t.Context(), "acme", "e1", message)
	check(t, "loopback", result, deliver.Failed, deliver.ReasonUnreachable)
	denied, _ := errors.AsType[*egress.UnreachableError](result.Err)
	if denied == nil || denied.Reason != egress.ReasonDenied {
		t.Errorf("error %v", result.Err)
	}
	if len(r.received()) != 1 || len(dialled) != 1 || dialled[0] != "93.184.216.34:80" {
		t.Errorf("%d requests, dialled %q", len(r.received()), dialled)
	}
}

// TestUndecidedPolicy: while the policy cannot check an address, nothing is dialled. The
// message waits, for which the receiver is not to blame.
func TestUndecidedPolicy(t *testing.T) {
	errLocal := errors.New("no netlink")
	for name, url := range map[string]string{
		"address": "http://93.184.216.34" + secretPath,
		"name":    "http://example.com" + secretPath,
	} {
		for failure, local := range map[string]func(context.Context) ([]netip.Addr, error){
			"fails": func(context.Context) ([]netip.Addr, error) { return nil, errLocal },
			"hangs": func(ctx context.Context) ([]netip.Addr, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			},
		} {
			t.Run(name+" "+failure, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var known atomic.Bool
					dialled := 0
					receive := dialTo(afterRequest(func(conn net.Conn) {
						_, _ = conn.Write([]byte("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"))
					}))
					guarded := policyInMemory(func(ctx context.Context, network, address string) (net.Conn, error) {
						dialled++
						return receive(ctx, network, address)
					})
					guarded.LocalAddrs = func(ctx context.Context) ([]netip.Addr, error) {
						if known.Load() {
							return nil, nil
						}
						return local(ctx)
					}
					s := newSender(t, configured(t, url), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: guarded})
					for range 10 { // more than it takes to pause a webhook
						r := s.Send(t.Context(), "acme", "e1", message)
						check(t, "undecided", r, deliver.Deferred, deliver.ReasonUnavailable)
						if !errors.Is(r.Err, egress.ErrUnavailable) {
							t.Errorf("error %v", r.Err)
						}
					}
					if dialled > 0 {
						t.Errorf("%d connections to an address that was not checked", dialled)
					}
					synctest.Wait() // the last request for the addresses has ended
					if name == "address" {
						ctx, cancel := context.WithTimeout(t.Context(), time.Second)
						r := s.Send(ctx, "acme", "e1", message)
						cancel()
						check(t, "deadline", r, deliver.Deferred, deliver.ReasonUnavailable)
						if r.Duration > time.Second {
							t.Errorf("took %v", r.Duration)
						}
					}
					known.Store(true)
					time.Sleep(3 * time.Second) // the deadline of LocalAddrs
					check(t, "decided", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
					s.CloseIdleConnections()
					synctest.Wait()
				})
			})
		}
	}
}
