package webhookcfg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// report returns the event without the fields that differ between a request and a call.
func report(event webhookcfg.Event) string {
	event.Operation, event.Credential, event.Duration = "", "", 0
	return fmt.Sprintf("%+v", event)
}

// respond writes the response of an error from Go.
func respond(t *testing.T, err error) *httptest.ResponseRecorder {
	t.Helper()
	e, ok := errors.AsType[*webhookcfg.Error](err)
	if !ok {
		t.Fatalf("%v is no Error", err)
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, nil)
	return w
}

// TestReadsFromGo: a read from Go passes the same checks as a GET, even if no GET is served,
// with the same event and the same response to an error.
func TestReadsFromGo(t *testing.T) {
	const known, gone, unknown = "e1", "gone", "foreign"
	tests := []struct {
		name, entity string // entity "" is a list
		after        string
		exists       error
		store        func(context.Context) error
		want         int
	}{
		{name: "one", entity: known, want: 200},
		{name: "one with an override that no longer exists", entity: gone, want: 200},
		{name: "list", want: 200},
		{name: "list after", after: known, want: 200},
		{name: "malformed identifier", entity: "e*", want: 400},
		{name: "unknown", entity: unknown, want: 404},
		{name: "catalogue down", entity: known, exists: errBroken, want: 503},
		{name: "store down", entity: known, store: func(context.Context) error { return errBroken }, want: 503},
		{name: "store panics", entity: known, store: func(context.Context) error { panic(hookURL) }, want: 500},
		{name: "list of a store that is down", store: func(context.Context) error { return errBroken }, want: 503},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			st := newRecorder()
			var event webhookcfg.Event
			o := options()
			o.OnEvent = eventInto(&event)
			o.EntityExists = func(_ context.Context, client, entity string) (bool, error) {
				return client == "acme" && entity != unknown && entity != gone, tt.exists
			}
			for _, entity := range []string{known, gone} {
				if err := st.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.Entity(entity), egress.NewURL(hookURL))); err != nil {
					t.Fatal(err)
				}
			}
			var kept webhookcfg.Store = st
			if tt.store != nil {
				kept = faulty{st, tt.store}
			}
			target := configure
			if tt.entity != "" {
				target += "/" + tt.entity
			} else if tt.after != "" {
				target += "?after=" + tt.after
			}
			r := httptest.NewRequest("GET", target, nil)
			r.SetBasicAuth("acme", "s3cret")
			r.RemoteAddr = ""
			wire := httptest.NewRecorder()
			newHandler(t, kept, o).ServeHTTP(wire, r)
			want := report(event)

			o.Reads = false
			h := newHandler(t, kept, o)
			var hook webhookcfg.Webhook
			var page webhookcfg.Page
			var err error
			if tt.entity != "" {
				hook, err = h.Read(t.Context(), "acme", tt.entity)
			} else {
				page, err = h.List(t.Context(), "acme", tt.after, 100)
			}
			if wire.Code != tt.want {
				t.Errorf("the request got %d, want %d", wire.Code, tt.want)
			}
			stack := func(text string) string { text, _, _ = strings.Cut(text, "stack:"); return text }
			if diff := cmp.Diff(stack(want), stack(report(event))); diff != "" {
				t.Errorf("-request +call:\n%s", diff)
			}
			switch {
			case tt.want != http.StatusOK:
				got := respond(t, err)
				if diff := cmp.Diff(fmt.Sprint(wire.Code, wire.Header(), wire.Body), fmt.Sprint(got.Code, got.Header(), got.Body)); diff != "" {
					t.Errorf("-request +call:\n%s", diff)
				}
			case err != nil:
				t.Error(err)
			case tt.entity != "" && (hook.URL.Reveal() != hookURL || hook.Source != webhookcfg.SourceOverride):
				t.Errorf("read %+v", hook)
			case tt.entity == "" && len(page.Overrides) != strings.Count(wire.Body.String(), "endpoint_id"):
				t.Errorf("listed %+v", page)
			}
		})
	}
}

// TestInvalidReads: a call that no correct host makes is an error.
func TestInvalidReads(t *testing.T) {
	h := newHandler(t, newRecorder(), options())
	read := func(client, entity string) error { _, err := h.Read(t.Context(), client, entity); return err }
	list := func(client, after string, limit int) error {
		_, err := h.List(t.Context(), client, after, limit)
		return err
	}
	for name, err := range map[string]error{
		"read without a client": read("", "e1"), "list without a client": list("", "", 10),
		"no limit": list("acme", "", 0), "limit": list("acme", "", 1001),
	} {
		if !errors.Is(err, webhookcfg.ErrInvalidArgument) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"empty entity": read("acme", ""), "slash": list("acme", "a/b", 10), "line": list("acme", "a\n", 10),
	} {
		if e, ok := errors.AsType[*webhookcfg.Error](err); !ok || e.Code != "invalid_request" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !h.CanList() {
		t.Error("a store with a list: CanList is false")
	}
	h = newHandler(t, struct{ webhookcfg.Store }{store.NewMemory()}, options())
	if err := list("acme", "", 10); h.CanList() || !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a store without a list: %v, %v", h.CanList(), err)
	}
}

// TestSignIn: a sign-in from Go works like a request's. The verifier, the event, the level of
// the record and the response are the same, and the secret never shows.
func TestSignIn(t *testing.T) {
	tests := []struct {
		name, id, secret string
		verify           verifier
		want             int
	}{
		{name: "right", id: "acme", secret: "s3cret", want: 200},
		{name: "wrong secret", id: "acme", secret: "wr0ng", want: 401},
		{name: "unknown", id: "nobody", secret: "s3cret", want: 401},
		{name: "no id", secret: "s3cret", want: 401},
		{name: "no secret", id: "acme", want: 401},
		{name: "control character", id: "acme", secret: "s3cret\x00", want: 401},
		{name: "not UTF-8", id: "acme\xff", secret: "s3cret", want: 401},
		{name: "too long", id: "acme", secret: strings.Repeat("s", 4096), want: 401},
		{name: "throttled", id: "acme", secret: "s3cret", verify: func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, retryError{1500 * time.Millisecond}
		}, want: 429},
		{name: "down", id: "acme", secret: "s3cret", verify: func(_ context.Context, _, secret string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, fmt.Errorf("no match for %s", secret)
		}, want: 503},
		{name: "invalid client", id: "acme", secret: "s3cret", verify: func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, nil
		}, want: 500},
		{name: "panics", id: "acme", secret: "s3cret", verify: func(_ context.Context, _, secret string) (webhookcfg.Client, error) { panic(secret) }, want: 500},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var event webhookcfg.Event
			var records bytes.Buffer
			o := options()
			o.OnEvent = eventInto(&event)
			o.Logger = slog.New(slog.NewTextHandler(&records, &slog.HandlerOptions{Level: slog.LevelDebug}))
			if tt.verify == nil {
				tt.verify = verify
			}
			h, err := webhookcfg.NewHandler(newRecorder(), tt.verify, o)
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequest("GET", configure+"/e1", nil)
			r.SetBasicAuth(tt.id, tt.secret)
			r.RemoteAddr = ""
			wire := httptest.NewRecorder()
			h.ServeHTTP(wire, r)
			want := event
			client, err := h.SignIn(t.Context(), tt.id, tt.secret)
			if event.Operation != "sign_in" || wire.Code != tt.want {
				t.Errorf("operation %s, and the request got %d", event.Operation, wire.Code)
			}
			if strings.Contains(records.String(), "s3cret") && tt.secret != "" {
				t.Errorf("the secret is in %s", &records)
			}
			if tt.want == http.StatusOK {
				if err != nil || client.ID != tt.id || event.Credential != tt.id || event.Status != http.StatusOK || !strings.Contains(records.String(), "level=DEBUG msg=\"webhook configuration request\" operation=sign_in") {
					t.Errorf("got %v, %+v and %s", err, event, &records)
				}
				return
			}
			if client != (webhookcfg.Client{}) {
				t.Errorf("got %+v", client)
			}
			got := respond(t, err)
			if diff := cmp.Diff(fmt.Sprint(wire.Code, wire.Header(), wire.Body), fmt.Sprint(got.Code, got.Header(), got.Body)); diff != "" {
				t.Errorf("-request +call:\n%s", diff)
			}
			if event.Status != want.Status || event.Code != want.Code || event.PresentedID != want.PresentedID {
				t.Errorf("the event is %+v, want %+v", event, want)
			}
			if (tt.want == http.StatusUnauthorized) != errors.Is(err, webhookcfg.ErrInvalidCredentials) {
				t.Errorf("got %v", err)
			}
		})
	}
	t.Run("colon", func(t *testing.T) {
		h, err := webhookcfg.NewHandler(newRecorder(), verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
			t.Error("asked the verifier")
			return webhookcfg.Client{ID: "a"}, nil
		}), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.SignIn(t.Context(), "a:b", "c"); !errors.Is(err, webhookcfg.ErrInvalidCredentials) {
			t.Errorf("an id that no request can hold: %v", err)
		}
	})
}

// TestOptionsAreCopied: nobody changes a handler through its options.
func TestOptionsAreCopied(t *testing.T) {
	h := newHandler(t, newRecorder(), options())
	h.Options().Policy.AllowHTTP = true
	if o := h.Options(); o.Policy.AllowHTTP || o.Timeout == 0 {
		t.Errorf("got %+v", o)
	}
}
