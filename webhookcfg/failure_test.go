package webhookcfg_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

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
		{"CheckChange", setRequest, func(o *webhookcfg.Options, fault func(context.Context) error) (webhookcfg.Store, webhookcfg.CredentialVerifier) {
			o.Refusals = []webhookcfg.Refusal{overLimit}
			o.CheckChange = func(ctx context.Context, _ webhookcfg.Change) error { return fault(ctx) }
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
