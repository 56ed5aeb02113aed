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

// TestProberQuotesResponse: the receiver chooses what a host's prober quotes, and the client the URL.
// If the text is too long to look for the URL in it, the event withholds it, and matches the error.
func TestProberQuotesResponse(t *testing.T) {
	for mode, want := range map[webhookcfg.ProbeMode]string{webhookcfg.ProbeEnforce: "400 webhook_unreachable", webhookcfg.ProbeWarn: successBody} {
		var event webhookcfg.Event
		var records strings.Builder
		o := options()
		o.ProbeMode, o.OnEvent = mode, eventInto(&event)
		o.Logger = slog.New(slog.NewTextHandler(&records, nil))
		o.Prober = prober(func(context.Context, string, egress.URL) error {
			return fmt.Errorf("%w: %s", errBroken, strings.Repeat("x", 64<<10))
		})
		got := steps(t, serve(t, newHandler(t, newRecorder(), o)), "set e1 https://up.example.com/?"+strings.Repeat("&=xxxxxxxx", 200))
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if text := fmt.Sprint(event.Err); !strings.HasPrefix(text, "withheld: ") || !errors.Is(event.Err, errBroken) {
			t.Errorf("the event has %.200s", text)
		}
		if !strings.Contains(records.String(), "withheld") || strings.Contains(records.String(), "xxxx") {
			t.Errorf("logged %.1000s", &records)
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

// fixedAddrs resolves every name to the same addresses.
type fixedAddrs []netip.Addr

func (f fixedAddrs) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) { return f, nil }

// TestUndecidedPolicy: while the policy can't check an address, nothing is called or changed.
// The client should try again, so we don't say that the URL is refused or unreachable.
func TestUndecidedPolicy(t *testing.T) {
	const addr = "93.184.216.34"
	local := map[string]func(context.Context) ([]netip.Addr, error){
		"fails": func(context.Context) ([]netip.Addr, error) { return nil, errBroken },
		"hangs": func(ctx context.Context) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	}
	for failure, local := range local {
		for _, host := range []string{addr, "hooks.example.com"} {
			t.Run(host+" "+failure, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					st := newRecorder()
					o := options()
					o.ProbeMode = webhookcfg.ProbeEnforce
					o.Policy = &egress.Policy{
						LocalAddrs: local,
						Resolver:   fixedAddrs{netip.MustParseAddr(addr)},
						Dial: func(_ context.Context, _, address string) (net.Conn, error) {
							t.Errorf("dialled %s", address)
							return nil, errBroken
						},
					}
					h := newHandler(t, st, o)
					if w := overWire(h, t.Context(), webhookcfg.All(), "https://"+host+"/t0ken"); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
						t.Errorf("response %d %s", w.Code, w.Body)
					}
					err := h.Set(t.Context(), "acme", webhookcfg.All(), "https://"+host+"/t0ken")
					if e, ok := errors.AsType[*webhookcfg.Error](err); !ok || e.Status != http.StatusServiceUnavailable || !errors.Is(err, egress.ErrUnavailable) {
						t.Errorf("call: %v", err)
					}
					synctest.Wait() // the last request for the addresses has ended
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					start := time.Now()
					if err := h.Set(ctx, "acme", webhookcfg.All(), "https://"+host+"/t0ken"); err == nil || time.Since(start) > time.Second {
						t.Errorf("call with a deadline: %v after %v", err, time.Since(start))
					}
					if changes := st.take(); changes != nil {
						t.Errorf("changed %q", changes)
					}
					time.Sleep(3 * time.Second) // the deadline of LocalAddrs
				})
			})
		}
	}
}

// TestSlowProbe: a probe has its own, shorter deadline, after which the target counts
// as unreachable.
func TestSlowProbe(t *testing.T) {
	tests := []struct {
		name                  string
		probeTimeout, timeout time.Duration
		status                int
		code                  string
		after                 time.Duration
	}{
		{"defaults", 0, 0, 400, "webhook_unreachable", 5 * time.Second},
		{"own", time.Second, 0, 400, "webhook_unreachable", time.Second},
		{"default under a short limit", 0, time.Second, 400, "webhook_unreachable", time.Second / 2},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := options()
				o.ProbeMode, o.ProbeTimeout, o.Timeout = webhookcfg.ProbeEnforce, tt.probeTimeout, tt.timeout
				o.Prober = prober(func(ctx context.Context, _ string, _ egress.URL) error { <-ctx.Done(); return ctx.Err() })
				st := newRecorder()
				w, start := httptest.NewRecorder(), time.Now()
				newHandler(t, st, o).ServeHTTP(w, setRequest())
				if w.Code != tt.status || errorCode(w.Body.String()) != tt.code || time.Since(start) != tt.after {
					t.Errorf("got %d %s after %v", w.Code, w.Body, time.Since(start))
				}
				if changes := st.take(); changes != nil {
					t.Errorf("the store saw %q", changes)
				}
			})
		})
	}
}

// TestNoTimeToProbe: a probe that the deadline of the request cut short proves nothing
// about the target.
func TestNoTimeToProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := options()
		o.ProbeMode, o.ProbeTimeout, o.Timeout = webhookcfg.ProbeEnforce, 5*time.Second, 6*time.Second
		o.Prober = prober(func(ctx context.Context, _ string, _ egress.URL) error { <-ctx.Done(); return ctx.Err() })
		o.EntityExists = func(context.Context, string, string) (bool, error) { time.Sleep(4 * time.Second); return true, nil }
		w, start := httptest.NewRecorder(), time.Now()
		newHandler(t, newRecorder(), o).ServeHTTP(w, setRequest())
		if w.Code != http.StatusServiceUnavailable || time.Since(start) != 6*time.Second {
			t.Errorf("got %d after %v", w.Code, time.Since(start))
		}
	})
}

// TestProbe pins the place of the probe in the order of checks, and the effect of its
// outcome in each mode.
func TestProbe(t *testing.T) {
	const down, busy, refused = "https://down.example.com/t0ken", "https://busy.example.com/", "ftp://x.example.com/"
	var probed []string
	probe := prober(func(ctx context.Context, client string, target egress.URL) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("the probe has no deadline")
		}
		probed = append(probed, client+" "+target.Reveal())
		switch target.Reveal() {
		case down:
			return errBroken
		case busy:
			return fmt.Errorf("wrapped: %w", retryError{})
		}
		return nil
	})
	commands := []string{"set e1 " + hookURL, "set " + down, "set " + busy, "set " + refused, "unset e9", "get e1", "get e2"}
	override := shown("endpoint_id", "e1", hookURL, "override")
	tests := []struct {
		name   string
		mode   webhookcfg.ProbeMode
		want   []string
		probed []string
	}{
		{
			"enforce", webhookcfg.ProbeEnforce,
			[]string{successBody, "400 webhook_unreachable", "429 too_many_requests", "400 invalid_webhook_url", successBody, override, shown("endpoint_id", "e2", "", "none")},
			[]string{"acme " + hookURL, "acme " + down, "acme " + busy},
		}, {
			"warn", webhookcfg.ProbeWarn,
			[]string{successBody, successBody, successBody, "400 invalid_webhook_url", successBody, shown("endpoint_id", "e1", busy, "base"), shown("endpoint_id", "e2", busy, "base")},
			[]string{"acme " + hookURL, "acme " + down, "acme " + busy},
		}, {
			"off", webhookcfg.ProbeOff,
			[]string{successBody, successBody, successBody, "400 invalid_webhook_url", successBody, shown("endpoint_id", "e1", busy, "base"), shown("endpoint_id", "e2", busy, "base")},
			nil,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			probed = nil
			o := options()
			o.Prober, o.ProbeMode = probe, tt.mode
			address := serve(t, newHandler(t, newRecorder(), o))
			if diff := cmp.Diff(tt.want, steps(t, address, commands...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tt.probed, probed); diff != "" {
				t.Errorf("probed: -want +got:\n%s", diff)
			}
		})
	}
}
