package webhookcfg_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// names is a resolver without a network.
type names map[string]string

func (n names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	address, ok := n[host]
	if !ok {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return []netip.Addr{netip.MustParseAddr(address)}, nil
}

// TestDefaultProber runs the handler with the prober of egress: one description for
// every reason to be unreachable, and 429 with a wait for too many probes.
func TestDefaultProber(t *testing.T) {
	policy := &egress.Policy{
		AllowHTTP: true,
		Resolver:  names{"up.example.com": "93.184.215.14", "inside.example.com": "10.0.0.1"},
		Dial: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			_ = theirs.Close()
			return ours, nil
		},
	}
	prober, err := policy.Prober(&egress.ProberOptions{ClientProbesPerMinute: 4})
	if err != nil {
		t.Fatal(err)
	}
	o := options()
	o.Policy, o.Prober, o.ProbeMode = policy, prober, webhookcfg.ProbeEnforce
	address := serve(t, newHandler(t, newRecorder(), o))
	got := steps(t, address,
		"set e1 http://up.example.com/in", "set e1 http://inside.example.com/in", "set e1 http://nowhere.example.com/in", "set e1 https://up.example.com/in",
		"set e1 http://up.example.com/in", "other set e1 http://up.example.com/in", "get e1")
	want := []string{
		successBody, "400 webhook_unreachable", "400 webhook_unreachable", "400 webhook_unreachable",
		"429 too_many_requests", successBody, shown("endpoint_id", "e1", "http://up.example.com/in", "override"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPolicyIsCopied: like all options, the policy can't be changed later.
func TestPolicyIsCopied(t *testing.T) {
	o := options()
	o.Policy = &egress.Policy{DenyPrefixes: []netip.Prefix{netip.MustParsePrefix("93.184.216.0/24")}}
	handler := newHandler(t, newRecorder(), o)
	o.Policy.DenyPrefixes[0] = netip.MustParsePrefix("192.0.2.0/24")
	o.Policy.AllowHTTP = true
	got := steps(t, serve(t, handler), "set e1 https://93.184.216.34/", "set e1 http://up.example.com/")
	if diff := cmp.Diff([]string{"400 invalid_webhook_url", "400 invalid_webhook_url"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestProbeTimeout: the event has the reason, whether the deadline of the prober, of the
// probe or of both at once ended it.
func TestProbeTimeout(t *testing.T) {
	policy := &egress.Policy{
		Resolver: names{"slow.example.com": "93.184.215.14"},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	for _, timeout := range []time.Duration{0, time.Second, 5 * time.Second, time.Hour} {
		for range 20 {
			synctest.Test(t, func(t *testing.T) {
				var event webhookcfg.Event
				o := options()
				o.Policy, o.ProbeMode, o.OnEvent = policy, webhookcfg.ProbeEnforce, eventInto(&event)
				if timeout != 0 {
					prober, err := policy.Prober(&egress.ProberOptions{Timeout: timeout})
					if err != nil {
						t.Fatal(err)
					}
					o.Prober = prober
				}
				w := httptest.NewRecorder()
				newHandler(t, newRecorder(), o).ServeHTTP(w, setRequestOf(configure, `{"webhook_url":"https://slow.example.com/t0ken"}`))
				var cause *egress.UnreachableError
				if w.Code != 400 || !errors.As(event.Err, &cause) || cause.Reason != egress.ReasonTimeout {
					t.Fatalf("prober of %v: got %d, %v", timeout, w.Code, event.Err)
				}
				time.Sleep(2 * time.Hour) // until the probe has ended
			})
		}
	}
}

// TestReceiverOfHTTP2Alone: a set for it is refused, and the event has the reason.
func TestReceiverOfHTTP2Alone(t *testing.T) {
	receiver := httptest.NewUnstartedServer(http.NotFoundHandler())
	receiver.EnableHTTP2 = true
	receiver.Config.ErrorLog = log.New(io.Discard, "", 0)
	receiver.TLS = &tls.Config{GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		config := receiver.TLS.Clone()
		config.NextProtos = []string{"h2"}
		if !slices.Contains(hello.SupportedProtos, "h2") {
			config.NextProtos[0] += " is missing" // crypto/tls does not alert otherwise
		}
		return config, nil
	}}
	receiver.StartTLS()
	defer receiver.Close()
	if resp, err := receiver.Client().Get(receiver.URL); err != nil || resp.ProtoMajor != 2 {
		t.Fatalf("the test has no effect: %v, %v", resp, err)
	}

	var event webhookcfg.Event
	o := options()
	o.Policy, o.ProbeMode, o.OnEvent = egress.Development(), webhookcfg.ProbeEnforce, eventInto(&event)
	o.Policy.RootCAs = receiver.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	got := steps(t, serve(t, newHandler(t, newRecorder(), o)), "set e1 "+receiver.URL)
	if diff := cmp.Diff([]string{"400 webhook_unreachable"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	cause, ok := errors.AsType[*egress.UnreachableError](event.Err)
	if !ok || cause.Reason != egress.ReasonTLS || !strings.Contains(fmt.Sprint(errors.Unwrap(cause)), "no application protocol") {
		t.Errorf("the event has %v", event.Err)
	}
}

// TestCauseOfRefusal: the log only has the step that failed, and you can unwrap the cause. That
// also holds if the text was redacted, since the URL's path has a word of it.
func TestCauseOfRefusal(t *testing.T) {
	receiver := httptest.NewUnstartedServer(http.NotFoundHandler())
	receiver.Config.ErrorLog = log.New(io.Discard, "", 0)
	receiver.StartTLS()
	defer receiver.Close()
	for path, text := range map[string]string{"/in": " is unreachable: unknown_authority", "/unreachable": " is [path]: unknown_authority"} {
		for mode, want := range map[webhookcfg.ProbeMode]string{webhookcfg.ProbeEnforce: "400 webhook_unreachable", webhookcfg.ProbeWarn: successBody} {
			var event webhookcfg.Event
			var records strings.Builder
			o := options()
			o.Policy, o.ProbeMode, o.OnEvent = egress.Development(), mode, eventInto(&event)
			o.Logger = slog.New(slog.NewTextHandler(&records, nil))
			got := steps(t, serve(t, newHandler(t, newRecorder(), o)), "set e1 "+receiver.URL+path)
			if diff := cmp.Diff([]string{want}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			var refusal *egress.UnreachableError
			var untrusted x509.UnknownAuthorityError
			if !errors.As(event.Err, &refusal) || !errors.As(errors.Unwrap(refusal), &untrusted) {
				t.Errorf("the event has %v", event.Err)
			}
			if !strings.Contains(records.String(), text) || strings.Contains(records.String(), untrusted.Error()) {
				t.Errorf("logged %s", &records)
			}
		}
	}
}

// TestHugeTimeouts: the longest timeouts work.
func TestHugeTimeouts(t *testing.T) {
	policy := &egress.Policy{
		AllowHTTP: true,
		Resolver:  names{"up.example.com": "93.184.215.14"},
		Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			_ = theirs.Close()
			return ours, ctx.Err()
		},
	}
	for _, timeout := range []time.Duration{1 << 62, math.MaxInt64} {
		o := options()
		o.Policy, o.ProbeMode, o.Timeout, o.ProbeTimeout = policy, webhookcfg.ProbeEnforce, timeout, timeout-1
		fault := func(ctx context.Context) error { return ctx.Err() }
		address := serveHTTP2(t, newHandler(t, faulty{fault: fault}, o))
		for range 20 {
			if a := raw(t, address, request("POST", configure, acme, `{"webhook_url":"http://up.example.com/"}`)); a.Status != http.StatusOK {
				t.Fatalf("%v: got %v", timeout, a)
			}
		}
		if body := rawHTTP2(t, address, nil, requestHeaders(0, "DELETE", configure), frame{frameData, flagEndStream, ""}); body != successBody {
			t.Errorf("%v, HTTP/2: got %v", timeout, body)
		}
	}
}
