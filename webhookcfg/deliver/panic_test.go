package deliver_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

var errPanic = errors.New("panic of the host")

// TestPanics: a panic in code of the host reaches the caller of Send, or is an error where
// the caller could not recover it. It leaves nothing occupied.
func TestPanics(t *testing.T) {
	r := newReceiver(t, false, status(200))
	st, keys := configured(t, r.URL+secretPath), keyring{deliver.GenerateKey()}
	panics := true
	fail := func() {
		if panics {
			panic(errPanic)
		}
	}
	for name, s := range map[string]*deliver.Sender{
		"Resolver": newSender(t, resolver(func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
			fail()
			return st.Resolve(ctx, client, entity)
		}), keys, nil),
		"OnResult": newSender(t, st, keys, &deliver.Options{
			OnResult: func(context.Context, string, string, string, deliver.Result) { fail() },
		}),
	} {
		panics = true
		for range 20 { // more than the attempts that may be under way
			if got := recovered(func() { s.Send(t.Context(), "acme", "e1", message) }); got != errPanic {
				t.Fatalf("%s: recovered %v", name, got)
			}
		}
		panics = false
		check(t, name, s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	}
}

// TestPanicOfKeys: while an attempt has a slot, a panic of the host defers the message. A queue
// like the outbox calls Begin and Send in goroutines of its own, where a panic would end the
// process. The error doesn't show what the panic quotes.
func TestPanicOfKeys(t *testing.T) {
	r := newReceiver(t, false, status(200))
	st := configured(t, r.URL+secretPath)
	panics := true
	s := newSender(t, st, keysFunc(func(_ context.Context, to deliver.Recipient) ([]deliver.Key, error) {
		if panics {
			panic(to.Webhook.URL.Reveal())
		}
		return []deliver.Key{mustParse(t, vectorKey)}, nil
	}), nil)
	for range 20 {
		attempt, _ := s.Begin(t.Context(), "acme", "e1", message)
		result := attempt.Send(t.Context())
		check(t, "panic", result, deliver.Deferred, deliver.ReasonUnavailable)
		if text := result.Err.Error(); !strings.HasPrefix(text, "deliver: Keys panicked: value of type string\n\n") || !strings.Contains(text, "panic_test.go") {
			t.Errorf("error %s", text)
		}
	}
	panics = false
	check(t, "afterwards", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
}

// TestPanicAfterTheRequest: a queue that recovers from a panic of OnResult still learns what
// became of the request.
func TestPanicAfterTheRequest(t *testing.T) {
	r := newReceiver(t, false, status(200))
	s := newSender(t, configured(t, r.URL+secretPath), keyring{deliver.GenerateKey()}, &deliver.Options{
		OnResult: func(context.Context, string, string, string, deliver.Result) { panic(errPanic) },
	})
	attempt, _ := s.Begin(t.Context(), "acme", "e1", message)
	if got := attempt.Result(); got.Outcome != 0 {
		t.Errorf("%v before the request", got)
	}
	if got := recovered(func() { attempt.Send(t.Context()) }); got != errPanic {
		t.Errorf("recovered %v", got)
	}
	check(t, "afterwards", attempt.Result(), deliver.Delivered, "")
}

func recovered(f func()) (value any) {
	defer func() { value = recover() }()
	f()
	return nil
}

// TestPanicOfPolicy: net/http calls the functions of a policy in a goroutine of its own.
func TestPanicOfPolicy(t *testing.T) {
	for name, broken := range map[string]*egress.Policy{
		"Resolver": {AllowHTTP: true, Resolver: panicking{}},
		"Dial": {
			AllowHTTP: true,
			Resolver:  names{"example.com": {netip.MustParseAddr("93.184.216.34")}},
			Dial:      func(context.Context, string, string) (net.Conn, error) { panic(errPanic) },
		},
	} {
		s := newSender(t, configured(t, "http://example.com"+secretPath), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: broken})
		for range 20 {
			result := s.Send(t.Context(), "acme", "e1", message)
			check(t, name, result, deliver.Deferred, deliver.ReasonUnavailable)
		}
	}
}

type panicking struct{}

func (panicking) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { panic(errPanic) }
