package webhookcfg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// eventInto returns an OnEvent that stores the last event in e.
func eventInto(e *webhookcfg.Event) func(context.Context, webhookcfg.Event) {
	return func(_ context.Context, got webhookcfg.Event) { *e = got }
}

// faulty is a store whose calls return the result of fault.
type faulty struct {
	webhookcfg.Store
	fault func(ctx context.Context) error
}

func (f faulty) Apply(ctx context.Context, _ webhookcfg.Change) error { return f.fault(ctx) }
func (f faulty) Resolve(ctx context.Context, _, _ string) (webhookcfg.Webhook, error) {
	return webhookcfg.Webhook{}, f.fault(ctx)
}

func (f faulty) List(ctx context.Context, _, _ string, _ int) (webhookcfg.Page, error) {
	return webhookcfg.Page{}, f.fault(ctx)
}

// TestFaults breaks each of the host's parts in each way, in virtual time: the client
// gets one response, the host one record and one event, and the handler serves the
// next request.
func TestFaults(t *testing.T) {
	faults := []struct {
		name   string
		fault  func(ctx context.Context) error
		status int
	}{
		{"error", func(context.Context) error { return errBroken }, 503},
		{"deadline", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, 503},
		{"panic", func(context.Context) error { panic("broken on purpose") }, 500},
		{"panic with an error", func(context.Context) error { panic(errBroken) }, 500},
		{"panic of the runtime", func(ctx context.Context) error { return ctx.Value("nothing").(error) }, 500},
		{"invalid argument", func(context.Context) error { return fmt.Errorf("x: %w", webhookcfg.ErrInvalidArgument) }, 500},
	}
	parts := []struct {
		name    string
		request func() *http.Request
		build   func(o *webhookcfg.Options, fault func(context.Context) error) (webhookcfg.Store, webhookcfg.CredentialVerifier)
	}{
		{"store, set", setRequest, func(_ *webhookcfg.Options, fault func(context.Context) error) (webhookcfg.Store, webhookcfg.CredentialVerifier) {
			return faulty{fault: fault}, verifier(verify)
		}},
		{"store, read", readRequest, func(_ *webhookcfg.Options, fault func(context.Context) error) (webhookcfg.Store, webhookcfg.CredentialVerifier) {
			return faulty{fault: fault}, verifier(verify)
		}},
		{"store, list", listRequest, func(_ *webhookcfg.Options, fault func(context.Context) error) (webhookcfg.Store, webhookcfg.CredentialVerifier) {
			return faulty{fault: fault}, verifier(verify)
		}},
		{"verifier", setRequest, func(_ *webhookcfg.Options, fault func(context.Context) error) (webhookcfg.Store, webhookcfg.CredentialVerifier) {
			return newRecorder(), verifier(func(ctx context.Context, _, _ string) (webhookcfg.Client, error) {
				return webhookcfg.Client{ID: "acme"}, fault(ctx)
			})
		}},
		{"EntityExists", setRequest, func(o *webhookcfg.Options, fault func(context.Context) error) (webhookcfg.Store, webhookcfg.CredentialVerifier) {
			o.EntityExists = func(ctx context.Context, _, _ string) (bool, error) { return true, fault(ctx) }
			return newRecorder(), verifier(verify)
		}},
		{"DeliveryStatus", readRequest, func(o *webhookcfg.Options, fault func(context.Context) error) (webhookcfg.Store, webhookcfg.CredentialVerifier) {
			o.DeliveryStatus = func(ctx context.Context, _, _ string, _ webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
				return webhookcfg.DeliveryStatus{State: "ok"}, fault(ctx)
			}
			st := newRecorder()
			if err := st.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(hookURL))); err != nil {
				t.Fatal(err)
			}
			return st, verifier(verify)
		}},
	}
	for _, part := range parts {
		for _, tt := range faults {
			if !strings.HasPrefix(part.name, "store, ") && tt.name == "invalid argument" {
				continue // the error is a store's alone
			}
			t.Run(part.name+", "+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var records bytes.Buffer
					events := make(chan webhookcfg.Event, 10)
					o := options()
					o.Logger = slog.New(slog.NewJSONHandler(&records, nil))
					o.OnEvent = func(_ context.Context, e webhookcfg.Event) { events <- e }
					working := false
					st, v := part.build(o, func(ctx context.Context) error {
						if working {
							return nil
						}
						return tt.fault(ctx)
					})
					h := hooktest.NewHandler(t, st, v, o)

					w := httptest.NewRecorder()
					h.ServeHTTP(w, part.request())
					if w.Code != tt.status {
						t.Errorf("status %d, want %d", w.Code, tt.status)
					}
					if body := w.Body.String(); strings.Contains(body, "broken") || errorCode(body) == "" {
						t.Errorf("body %s", body)
					}
					if n := strings.Count(records.String(), `"level":"ERROR"`); n != 1 {
						t.Errorf("%d records:\n%s", n, &records)
					}
					if len(events) != 1 {
						t.Errorf("%d events", len(events))
					} else if e := <-events; e.Status != tt.status || e.Err == nil {
						t.Errorf("event %+v", e)
					}

					working = true
					again := httptest.NewRecorder()
					h.ServeHTTP(again, part.request())
					if again.Code != http.StatusOK {
						t.Errorf("the next request got %d", again.Code)
					}
				})
			})
		}
	}
}

func setRequest() *http.Request {
	return setRequestOf(configure, `{"endpoint_id":"e1","webhook_url":"`+hookURL+`"}`)
}

func readRequest() *http.Request {
	r := httptest.NewRequest("GET", configure+"/e1", nil)
	r.SetBasicAuth("acme", "s3cret")
	return r
}

func listRequest() *http.Request {
	r := httptest.NewRequest("GET", configure, nil)
	r.SetBasicAuth("acme", "s3cret")
	return r
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

// nilError is what a careless function returns for "no error".
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// TestErrorThatPanics: the response to a failed change is never 200, whatever its error
// does.
func TestErrorThatPanics(t *testing.T) {
	var event webhookcfg.Event
	o := options()
	o.OnEvent = eventInto(&event)
	w := httptest.NewRecorder()
	newHandler(t, faulty{fault: func(context.Context) error { return (*nilError)(nil) }}, o).ServeHTTP(w, setRequest())
	if w.Code != http.StatusInternalServerError || errorCode(w.Body.String()) != "server_error" || event.Status != w.Code {
		t.Errorf("got %d %s and the event %+v", w.Code, w.Body, event)
	}
}

// TestAbortHandler: the panic that net/http handles is left to net/http, as the bare
// value, also where a wrapper of a store or verifier wrapped it.
func TestAbortHandler(t *testing.T) {
	for _, thrown := range []error{http.ErrAbortHandler, fmt.Errorf("shared call: %w", http.ErrAbortHandler)} {
		h := newHandler(t, faulty{fault: func(context.Context) error { panic(thrown) }}, options())
		func() {
			defer func() {
				if value := recover(); value != http.ErrAbortHandler {
					t.Errorf("%v: recovered %v", thrown, value)
				}
			}()
			h.ServeHTTP(httptest.NewRecorder(), setRequest())
			t.Errorf("%v: no panic", thrown)
		}()
	}
}

// TestAbortInCachedVerifier: net/http doesn't log the panic either if it comes from a cache
// of sign-ins, which calls the verifier in its own goroutine.
func TestAbortInCachedVerifier(t *testing.T) {
	cached, err := auth.NewCache(verifier(func(context.Context, string, string) (webhookcfg.Client, error) { panic(http.ErrAbortHandler) }), nil)
	if err != nil {
		t.Fatal(err)
	}
	h := hooktest.NewHandler(t, newRecorder(), cached, options())
	var logged bytes.Buffer
	server := httptest.NewUnstartedServer(h)
	server.Config.ErrorLog = log.New(&logged, "", 0)
	server.Start()
	r, err := http.NewRequest("DELETE", server.URL+configure+"/e1", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("acme", "s3cret")
	if resp, err := server.Client().Do(r); err == nil {
		_ = resp.Body.Close()
		t.Errorf("got %s", resp.Status)
	}
	server.Close() // waits for the connections
	if logged.Len() > 0 {
		t.Errorf("logged %s", &logged)
	}
}

// TestDisconnect: a client that disconnects during the probe changes nothing.
func TestDisconnect(t *testing.T) {
	o := options()
	o.ProbeMode = webhookcfg.ProbeWarn
	ctx, disconnect := context.WithCancel(t.Context())
	o.Prober = prober(func(ctx context.Context, _ string, _ egress.URL) error { disconnect(); <-ctx.Done(); return ctx.Err() })
	st := newRecorder()
	newHandler(t, st, o).ServeHTTP(httptest.NewRecorder(), setRequest().WithContext(ctx))
	if changes := st.take(); changes != nil {
		t.Errorf("the store saw %q", changes)
	}
}

// TestClientID: a client's ID that no store could keep, or no log could show, is a defect of
// the verifier.
func TestClientID(t *testing.T) {
	tests := []struct {
		id string
		ok bool
	}{
		{"", false},
		{" ", false},
		{"\u00a0\u2003", false},
		{"a\nb", false},
		{"a\x00", false},
		{"\u0085", false},
		{"\x7f", false},
		{"\xff", false},
		{strings.Repeat("x", 1025), false},
		{strings.Repeat("x", 1024), true},
		{"a b", true},
		{"customer/ü-1", true},
	}
	for _, tt := range tests {
		st := newRecorder()
		h := hooktest.NewHandler(t, st, verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{ID: tt.id}, nil
		}), options())
		w := httptest.NewRecorder()
		h.ServeHTTP(w, setRequest())
		if changes := st.take(); tt.ok != (w.Code == http.StatusOK) || tt.ok != (changes != nil) || !tt.ok && errorCode(w.Body.String()) != "server_error" {
			t.Errorf("%.10q: got %d %s, and the store saw %q", tt.id, w.Code, w.Body, changes)
		}
	}
}

// TestThrottledVerifier: a verifier can ask the client to wait, even if the credentials are
// wrong. Retry-After is at least a second.
func TestThrottledVerifier(t *testing.T) {
	for wait, want := range map[time.Duration]string{90 * time.Second: "90", 1001 * time.Millisecond: "2", 0: "1", -time.Second: "1", math.MaxInt64: "9223372037"} {
		h := hooktest.NewHandler(t, newRecorder(), verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, errors.Join(webhookcfg.ErrInvalidCredentials, retryError{wait})
		}), options())
		w := httptest.NewRecorder()
		h.ServeHTTP(w, setRequest())
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != want {
			t.Errorf("wait %v: got %d, Retry-After %q", wait, w.Code, w.Header().Get("Retry-After"))
		}
	}
}

// TestPanickingHook: if the hook panics, the response is still written, and doesn't change.
// That also holds if it's the response to another panic.
func TestPanickingHook(t *testing.T) {
	var records bytes.Buffer
	o := options()
	o.Logger = slog.New(slog.NewJSONHandler(&records, nil))
	o.OnEvent = func(context.Context, webhookcfg.Event) { panic("in the hook") }
	for _, tt := range []struct {
		store webhookcfg.Store
		code  int
	}{
		{newRecorder(), http.StatusOK},
		{newRecorder(), http.StatusOK},
		{faulty{fault: func(context.Context) error { panic(errBroken) }}, http.StatusInternalServerError},
	} {
		records.Reset()
		w := httptest.NewRecorder()
		newHandler(t, tt.store, o).ServeHTTP(w, setRequest())
		if w.Code != tt.code || tt.code == http.StatusOK && w.Body.String() != successBody {
			t.Errorf("got %d %s, want %d", w.Code, w.Body, tt.code)
		}
		if n := strings.Count(records.String(), "in the hook"); n != 1 {
			t.Errorf("logged %d times:\n%s", n, &records)
		}
		if n := strings.Count(records.String(), "webhook configuration request"); n != 1 {
			t.Errorf("%d records of the request:\n%s", n, &records)
		}
	}
}
