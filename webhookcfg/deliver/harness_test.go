package deliver_test

import (
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// full runs the tests of many messages in full. Without it, a sample of them takes seconds.
var full = flag.Bool("full", false, "run long tests in full, and not a sample")

// secretPath is the part of the URL of a webhook that must not be printed.
const secretPath = "/t0ken?key=s3cret"

var message = deliver.Message{ID: "msg_1", Body: []byte(`{"type":"module.updated"}`)}

// request is what a receiver got.
type request struct {
	method, target string
	header         http.Header
	body           []byte
}

// receiver is a receiver that counts connections and records requests.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	dialled  int
	requests []request
}

// newReceiver starts a receiver that responds to each request with respond. If tls is
// set, it speaks TLS.
func newReceiver(t testing.TB, tls bool, respond http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.requests = append(r.requests, request{req.Method, req.RequestURI, req.Header, body})
		r.mu.Unlock()
		respond(w, req)
	}))
	r.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			r.mu.Lock()
			r.dialled++
			r.mu.Unlock()
		}
	}
	if tls {
		r.StartTLS()
	} else {
		r.Start()
	}
	t.Cleanup(r.Close)
	return r
}

// received returns the requests so far.
func (r *receiver) received() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// connections returns the number of connections so far.
func (r *receiver) connections() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dialled
}

// policy returns a policy that allows receivers on this machine.
func policy(receivers ...*receiver) *egress.Policy {
	p := egress.Development()
	for _, r := range receivers {
		if r.TLS != nil {
			p.RootCAs = r.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
		}
	}
	return p
}

// status returns a handler that responds with a status.
func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// configured returns a store in which a URL is the webhook of all entities of acme.
func configured(t testing.TB, url string) *store.Memory {
	t.Helper()
	st := store.NewMemory()
	set(t, st, url)
	return st
}

func set(t testing.TB, st webhookcfg.Store, url string) {
	t.Helper()
	hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(url)))
}

// keyring has the keys of every client.
type keyring []deliver.Key

func (k keyring) Keys(context.Context, deliver.Recipient) ([]deliver.Key, error) { return k, nil }

// newSender returns a sender with a policy that allows receivers on this machine, unless
// opts has one.
func newSender(t testing.TB, webhooks deliver.Resolver, keys deliver.Keys, opts *deliver.Options) *deliver.Sender {
	t.Helper()
	var o deliver.Options
	if opts != nil {
		o = *opts
	}
	if o.Policy == nil {
		o.Policy = egress.Development()
	}
	s, err := deliver.New(webhooks, keys, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.CloseIdleConnections()
		if n := s.UnderWay(); n > 0 {
			t.Errorf("%d clients, hosts and webhooks have attempts under way", n)
		}
	})
	return s
}

// Two of the ways in which a receiver is unreachable, for check.
const (
	reasonTimeout = deliver.Reason(egress.ReasonTimeout)
	reasonTLS     = deliver.Reason(egress.ReasonTLS)
)

// reasonOf returns the reason of a result, with reasonTimeout and reasonTLS.
func reasonOf(r deliver.Result) deliver.Reason {
	if unreachable, ok := errors.AsType[*egress.UnreachableError](r.Err); ok && r.Reason == deliver.ReasonUnreachable {
		if step := deliver.Reason(unreachable.Reason); step == reasonTimeout || step == reasonTLS {
			return step
		}
	}
	return r.Reason
}

// check reports a result that differs from the one that is expected, or violates what
// holds for every result.
func check(t *testing.T, name string, r deliver.Result, outcome deliver.Outcome, reason deliver.Reason) {
	t.Helper()
	if r.Outcome != outcome || reasonOf(r) != reason {
		t.Errorf("%s: %v, reason %q, status %d, error %v; want %v, reason %q", name, r.Outcome, reasonOf(r), r.Status, r.Err, outcome, reason)
	}
	if _, ok := errors.AsType[*egress.UnreachableError](r.Err); ok != (r.Reason == deliver.ReasonUnreachable) {
		t.Errorf("%s: reason %q with the error %v", name, r.Reason, r.Err)
	}
	if succeeded := r.Outcome == deliver.Delivered || r.Reason == deliver.ReasonNoWebhook || r.Reason == deliver.ReasonOff; (r.Err == nil) != succeeded {
		t.Errorf("%s: %v with the error %v", name, r.Outcome, r.Err)
	}
	if (r.Outcome == deliver.Deferred) && r.Wait <= 0 || r.Wait < 0 {
		t.Errorf("%s: %v with the wait %v", name, r.Outcome, r.Wait)
	}
	if r.Duration < 0 {
		t.Errorf("%s: took %v", name, r.Duration)
	}
	checkHidden(t, r, "t0ken", "s3cret")
}

// names are the names that a resolver knows.
type names map[string][]netip.Addr

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	addrs, ok := n[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return addrs, nil
}
