package webhookcfg_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
)

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

// panicking is a handler of records that panics.
type panicking struct{ inEnabled bool }

func (p panicking) Enabled(context.Context, slog.Level) bool {
	if p.inEnabled {
		panic("in Enabled")
	}
	return true
}

func (panicking) Handle(context.Context, slog.Record) error { panic("in Handle") }

func (p panicking) WithAttrs([]slog.Attr) slog.Handler { return p }

func (p panicking) WithGroup(string) slog.Handler { return p }

// TestLoggerThatPanics: the response reaches the client, and the event the host.
func TestLoggerThatPanics(t *testing.T) {
	for _, inEnabled := range []bool{true, false} {
		events := make(chan webhookcfg.Event, 10)
		o := options()
		o.Logger = slog.New(panicking{inEnabled})
		o.OnEvent = func(_ context.Context, e webhookcfg.Event) { events <- e }
		address := serve(t, newHandler(t, newRecorder(), o))
		if a := raw(t, address, request("DELETE", configure, acme, "")); a.Body != successBody {
			t.Errorf("got %v", a)
		}
		if e := <-events; e.Status != 200 {
			t.Errorf("event %+v", e)
		}
	}
}
