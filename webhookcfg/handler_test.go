package webhookcfg_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// overWire makes a change as a client does.
func overWire(h *webhookcfg.Handler, ctx context.Context, scope webhookcfg.Scope, target string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("DELETE", configure, nil)
	switch {
	case target != "" && scope.IsAll():
		r = httptest.NewRequest("POST", configure, strings.NewReader(fmt.Sprintf(`{"webhook_url":%q}`, target)))
	case target != "":
		r = httptest.NewRequest("POST", configure, strings.NewReader(fmt.Sprintf(`{"endpoint_id":%q,"webhook_url":%q}`, scope.Entity(), target)))
	case !scope.IsAll():
		r = httptest.NewRequest("DELETE", configure+"/"+scope.Entity(), nil)
	}
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth("acme", "s3cret")
	r.RemoteAddr = ""
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r.WithContext(ctx))
	return w
}

// TestCallsAreChecked: a call from Go passes the same checks as a request. It has the same
// effect, event and record, and its error has the same texts as the response.
func TestCallsAreChecked(t *testing.T) {
	const known, unknown = "e1", "foreign"
	busy := func(context.Context) error { return retryError{1500 * time.Millisecond} }
	tests := []struct {
		name   string
		scope  webhookcfg.Scope
		url    string // "" in an unset
		probe  func(context.Context) error
		exists error
		store  func(context.Context) error
		want   int
		cause  error
	}{
		{name: "set one", scope: webhookcfg.Entity(known), url: hookURL, want: 200},
		{name: "set all", scope: webhookcfg.All(), url: hookURL, want: 200},
		{name: "unset one", scope: webhookcfg.Entity(known), want: 200},
		{name: "unset all", scope: webhookcfg.All(), want: 200},
		{name: "malformed identifier", scope: webhookcfg.Entity("e*"), url: hookURL, want: 400},
		{name: "malformed identifier of unset", scope: webhookcfg.Entity("e*"), want: 400},
		{name: "URL refused", scope: webhookcfg.All(), url: "http://hooks.example.com/t0ken", want: 400},
		{name: "unknown entity", scope: webhookcfg.Entity(unknown), url: hookURL, want: 404},
		{name: "unknown entity of unset", scope: webhookcfg.Entity(unknown), want: 404},
		{name: "catalogue down", scope: webhookcfg.Entity(known), exists: errBroken, want: 503, cause: errBroken},
		{name: "unreachable", scope: webhookcfg.All(), url: hookURL, probe: func(context.Context) error { return errBroken }, want: 400, cause: errBroken},
		{name: "probe throttled", scope: webhookcfg.All(), url: hookURL, probe: busy, want: 429, cause: retryError{1500 * time.Millisecond}},
		{name: "prober down", scope: webhookcfg.All(), url: hookURL, probe: func(context.Context) error { return egress.ErrUnavailable }, want: 503, cause: egress.ErrUnavailable},
		{name: "probe panics", scope: webhookcfg.All(), url: hookURL, probe: func(context.Context) error { panic("in the prober") }, want: 500},
		{name: "store down", scope: webhookcfg.All(), store: func(context.Context) error { return errBroken }, want: 503, cause: errBroken},
		{name: "store hangs", scope: webhookcfg.All(), url: hookURL, store: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }, want: 503, cause: context.DeadlineExceeded},
		{name: "store panics", scope: webhookcfg.All(), url: hookURL, store: func(context.Context) error { panic(hookURL) }, want: 500},
	}
	type outcome struct {
		Status      int
		Code, Text  string
		RetryAfter  string
		Changes     []string
		Event       string
		Record      map[string]any
		ErrorHasURL bool
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				run := func(name string, do func(ctx context.Context, h *webhookcfg.Handler, out *outcome)) (out outcome) {
					var event webhookcfg.Event
					var records bytes.Buffer
					st := newRecorder()
					o := options()
					o.AllScope = webhookcfg.AllScopeExact // governs requests alone
					o.Logger = slog.New(slog.NewJSONHandler(&records, nil))
					o.OnEvent = eventInto(&event)
					o.ProbeMode = webhookcfg.ProbeEnforce
					o.Prober = prober(func(ctx context.Context, client string, _ egress.URL) error {
						if client != "acme" {
							t.Errorf("the client of the probe is %q", client)
						}
						if tt.probe == nil {
							return nil
						}
						return tt.probe(ctx)
					})
					o.EntityExists = func(_ context.Context, client, entity string) (bool, error) {
						return client == "acme" && entity == known, tt.exists
					}
					var store webhookcfg.Store = st
					if tt.store != nil {
						store = faulty{st, tt.store}
					}
					ctx := auth.ContextWithSource(t.Context(), netip.MustParseAddr("2001:db8::1"))
					do(ctx, newHandler(t, store, o), &out)
					out.Changes = st.take()
					if credential := map[string]string{"wire": "acme"}[name]; event.Credential != credential {
						t.Errorf("%s: the credential is %q", name, event.Credential)
					}
					event.Credential, event.Duration = "", 0
					out.Event = fmt.Sprintf("%+v", event)
					if err := json.Unmarshal(records.Bytes(), &out.Record); err != nil {
						t.Errorf("%v in %s", err, &records)
					}
					delete(out.Record, "time")
					delete(out.Record, "duration")
					delete(out.Record, "stack")
					delete(out.Record, "credential")
					return out
				}
				wire := run("wire", func(ctx context.Context, h *webhookcfg.Handler, out *outcome) {
					w := overWire(h, ctx, tt.scope, tt.url)
					out.Status, out.RetryAfter = w.Code, w.Header().Get("Retry-After")
					var body struct {
						Error string
						Text  string `json:"error_description"`
					}
					if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
						t.Error(err)
					}
					out.Code, out.Text = body.Error, body.Text
				})
				call := run("call", func(ctx context.Context, h *webhookcfg.Handler, out *outcome) {
					var err error
					if tt.url == "" {
						err = h.Unset(ctx, "acme", tt.scope)
					} else {
						err = h.Set(ctx, "acme", tt.scope, tt.url)
					}
					if err == nil {
						out.Status = http.StatusOK
						return
					}
					var e *webhookcfg.Error
					if !errors.As(err, &e) {
						t.Fatalf("%v is no Error", err)
					}
					out.Status, out.Code, out.Text = e.Status, e.Code, e.Description
					if e.RetryAfter > 0 {
						out.RetryAfter = fmt.Sprint(int(e.RetryAfter.Round(time.Second) / time.Second))
					}
					if tt.cause != nil && !errors.Is(err, tt.cause) {
						t.Errorf("%v does not wrap %v", err, tt.cause)
					}
					out.ErrorHasURL = strings.Contains(err.Error(), "t0ken") || strings.Contains(err.Error(), "/in")
				})
				if diff := cmp.Diff(wire, call); diff != "" {
					t.Errorf("-request +call:\n%s", diff)
				}
				if call.Status != tt.want {
					t.Errorf("got %d, want %d", call.Status, tt.want)
				}
			})
		})
	}
}

// TestInvalidCalls: a call without a client or a scope, which no correct host makes, changes
// nothing, and never means all.
func TestInvalidCalls(t *testing.T) {
	st := newRecorder()
	h := newHandler(t, st, options())
	for _, tt := range []struct {
		client string
		scope  webhookcfg.Scope
	}{
		{"", webhookcfg.All()},
		{" ", webhookcfg.All()},
		{"a\x00", webhookcfg.All()},
		{strings.Repeat("a", 1025), webhookcfg.All()},
		{"acme", webhookcfg.Scope{}},
		{"acme", webhookcfg.Entity("")},
	} {
		for _, err := range []error{
			h.Set(t.Context(), tt.client, tt.scope, hookURL),
			h.Unset(t.Context(), tt.client, tt.scope),
		} {
			if !errors.Is(err, webhookcfg.ErrInvalidArgument) {
				t.Errorf("%.20q, %v: got %v", tt.client, tt.scope, err)
			}
		}
	}
	if err := h.Set(t.Context(), "acme", webhookcfg.All(), ""); err == nil || errors.Is(err, webhookcfg.ErrInvalidArgument) {
		t.Errorf("an empty URL: got %v", err)
	}
	if changes := st.take(); changes != nil {
		t.Errorf("changed %q", changes)
	}
}

// TestCallIgnoresAllScope: the host can always change all entities.
func TestCallIgnoresAllScope(t *testing.T) {
	st := newRecorder()
	o := options()
	o.AllScope = webhookcfg.AllScopeRefused
	o.OriginalTarget = func(*http.Request) string { return "" }
	h := newHandler(t, st, o)
	if err := errors.Join(h.Set(t.Context(), "acme", webhookcfg.All(), hookURL), h.Unset(t.Context(), "acme", webhookcfg.All())); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"acme set all", "acme unset all"}, st.take()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestCallEndsWithContext: a call whose context ended changes nothing.
func TestCallEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	st := newRecorder()
	h := newHandler(t, st, options())
	var e *webhookcfg.Error
	if err := h.Set(ctx, "acme", webhookcfg.All(), hookURL); !errors.Is(err, context.Canceled) || !errors.As(err, &e) || e.Status != http.StatusServiceUnavailable {
		t.Errorf("got %v", err)
	}
	if changes := st.take(); changes != nil {
		t.Errorf("changed %q", changes)
	}
}

// TestCallOutlivesReport: a panic of OnEvent or of the logger doesn't change the outcome, and
// it's logged if the logger still works.
func TestCallOutlivesReport(t *testing.T) {
	for _, logger := range []slog.Handler{slog.DiscardHandler, panicking{true}, panicking{false}} {
		st := newRecorder()
		o := options()
		o.Logger = slog.New(logger)
		o.OnEvent = func(context.Context, webhookcfg.Event) { panic("in OnEvent") }
		if err := newHandler(t, st, o).Set(t.Context(), "acme", webhookcfg.All(), hookURL); err != nil || len(st.take()) != 1 {
			t.Errorf("got %v", err)
		}
	}
	var records bytes.Buffer
	o := options()
	o.Logger = slog.New(slog.NewTextHandler(&records, nil))
	o.OnEvent = func(context.Context, webhookcfg.Event) { panic(hookURL) }
	if err := newHandler(t, newRecorder(), o).Set(t.Context(), "acme", webhookcfg.All(), hookURL); err != nil || !strings.Contains(records.String(), "panic in OnEvent") || strings.Contains(records.String(), "/in") {
		t.Errorf("got %v and %s", err, &records)
	}
}

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

// TestCheck: a check refuses what a set refuses, with the same error, and never changes
// anything.
func TestCheck(t *testing.T) {
	probed := 0
	o := options()
	o.ProbeMode = webhookcfg.ProbeEnforce
	o.Prober = prober(func(_ context.Context, _ string, target egress.URL) error {
		probed++
		if strings.Contains(target.Reveal(), "down") {
			return errBroken
		}
		return nil
	})
	o.EntityExists = func(_ context.Context, _, entity string) (bool, error) { return entity != "foreign", nil }
	var event webhookcfg.Event
	o.OnEvent = eventInto(&event)
	st := newRecorder()
	h := newHandler(t, st, o)
	for _, tt := range []struct {
		client string
		scope  webhookcfg.Scope
		url    string
		want   int
	}{
		{"acme", webhookcfg.All(), hookURL, 200},
		{"acme", webhookcfg.Entity("e1"), hookURL, 200},
		{"acme", webhookcfg.Entity("foreign"), hookURL, 404},
		{"acme", webhookcfg.Entity("e*"), hookURL, 400},
		{"acme", webhookcfg.Scope{}, hookURL, 500},
		{"", webhookcfg.All(), hookURL, 500},
		{"acme", webhookcfg.All(), "http://10.0.0.1/", 400},
		{"acme", webhookcfg.All(), "https://down.example.com/", 400},
		{"acme", webhookcfg.All(), "", 400},
	} {
		checked := h.Check(t.Context(), tt.client, tt.scope, tt.url)
		if event.Status != tt.want || event.Operation != "check" {
			t.Errorf("%+v: event %+v, want %d", tt, event, tt.want)
		}
		if changes := st.take(); len(changes) > 0 {
			t.Errorf("%+v: changes %q", tt, changes)
		}
		if set := h.Set(t.Context(), tt.client, tt.scope, tt.url); fmt.Sprint(set) != fmt.Sprint(checked) {
			t.Errorf("%+v: check %v, set %v", tt, checked, set)
		}
		st.take()
	}
	if probed != 6 {
		t.Errorf("probed %d times", probed)
	}
}
