package webhookcfg_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/sealed"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

var (
	overLimit = webhookcfg.Refusal{Code: "too_many_overrides", Description: "The plan allows 500 overrides"}
	reserved  = webhookcfg.Refusal{Code: "reserved", Description: "This identifier is reserved"}
)

// refusing returns options with a list of refusals.
func refusing() *webhookcfg.Options {
	o := options()
	o.Refusals = []webhookcfg.Refusal{reserved, overLimit}
	return o
}

// TestRefusals: whatever the host says, of the host's function or of its store, clients see
// only the texts in the list, and nothing changes.
func TestRefusals(t *testing.T) {
	unlisted := webhookcfg.Refusal{Code: "unlisted", Description: "Not in the list"}
	otherText := webhookcfg.Refusal{Code: overLimit.Code, Description: "Another text"}
	tests := []struct {
		name   string
		err    error
		status int
		body   string
	}{
		{"listed", overLimit, 403, errorBody("too_many_overrides", "The plan allows 500 overrides")},
		{"another", reserved, 403, errorBody("reserved", "This identifier is reserved")},
		{"wrapped", fmt.Errorf("s3cret plan of %s: %w", hookURL, overLimit), 403, errorBody("too_many_overrides", "The plan allows 500 overrides")},
		{"joined", errors.Join(errBroken, overLimit), 403, errorBody("too_many_overrides", "The plan allows 500 overrides")},
		{"unlisted", unlisted, 500, errorBody("server_error", "The server encountered an unexpected condition")},
		{"with another text", otherText, 500, errorBody("server_error", "The server encountered an unexpected condition")},
		{"zero", webhookcfg.Refusal{}, 500, errorBody("server_error", "The server encountered an unexpected condition")},
		{"no refusal", errBroken, 503, errorBody("temporarily_unavailable", "The service cannot complete the request now")},
	}
	scopes := map[string]webhookcfg.Scope{"one": webhookcfg.Entity("e1"), "all": webhookcfg.All()}
	for _, tt := range tests {
		for _, part := range []string{"CheckChange", "store"} {
			for scopeName, scope := range scopes {
				for _, target := range []string{"", hookURL} {
					t.Run(fmt.Sprintf("%s of %s, %s %q", tt.name, part, scopeName, target), func(t *testing.T) {
						isBare := tt.status == http.StatusForbidden && (tt.err == overLimit || tt.err == reserved)
						var event webhookcfg.Event
						var records bytes.Buffer
						changes := newRecorder()
						var st webhookcfg.Store = changes
						o := refusing()
						o.OnEvent, o.Logger = eventInto(&event), slog.New(slog.NewTextHandler(&records, nil))
						o.ProbeMode = webhookcfg.ProbeEnforce
						probes := 0
						o.Prober = prober(func(context.Context, string, egress.URL) error { probes++; return nil })
						if part == "store" {
							st = faulty{changes, func(context.Context) error { return tt.err }}
						} else {
							o.CheckChange = func(_ context.Context, c webhookcfg.Change) error {
								if c.Client != "acme" || c.Scope != scope || c.URL.Reveal() != target || c.Validate() != nil {
									t.Errorf("asked about %+v", c)
								}
								return tt.err
							}
						}
						h := newHandler(t, st, o)
						w := overWire(h, t.Context(), scope, target)
						if w.Code != tt.status || w.Body.String() != tt.body || w.Header().Get("Webhook-Scope") != "" {
							t.Errorf("got %d %s", w.Code, w.Body)
						}
						if event.Status != tt.status || event.Client != "acme" || event.Scope != scope || (event.Err == nil) != isBare || !isBare && !errors.Is(event.Err, tt.err) {
							t.Errorf("event %+v", event)
						}
						if level := map[int]string{403: "INFO", 500: "ERROR", 503: "ERROR"}[tt.status]; !strings.Contains(records.String(), "level="+level) {
							t.Errorf("record %s", &records)
						}
						if target != "" && strings.Contains(records.String(), "/in") || strings.Contains(records.String(), "s3cret") {
							t.Errorf("a secret in %s", &records)
						}

						var call error
						if target == "" {
							call = h.Unset(t.Context(), "acme", scope)
						} else {
							call = h.Set(t.Context(), "acme", scope, target)
						}
						if got := respond(t, call); got.Body.String() != tt.body || !isBare && !errors.Is(call, tt.err) {
							t.Errorf("from Go: %v", call)
						}
						if part == "CheckChange" && probes != 0 {
							t.Errorf("%d probes", probes)
						}
						if got := changes.take(); got != nil {
							t.Errorf("changed %q", got)
						}
					})
				}
			}
		}
	}
}

// TestRefusedReads: CheckChange is about changes alone, and a store can't refuse a read.
func TestRefusedReads(t *testing.T) {
	o := refusing()
	o.CheckChange = func(context.Context, webhookcfg.Change) error { return overLimit }
	st := newRecorder()
	h := newHandler(t, st, o)
	address := serve(t, h)
	for _, target := range []string{configure, configure + "/e1"} {
		if got := raw(t, address, request("GET", target, acme, "")); got.Status != http.StatusOK {
			t.Errorf("%s: got %d", target, got.Status)
		}
	}
	address = serve(t, newHandler(t, faulty{st, func(context.Context) error { return overLimit }}, refusing()))
	for _, target := range []string{configure, configure + "/e1"} {
		if got := raw(t, address, request("GET", target, acme, "")); got.Status != http.StatusServiceUnavailable {
			t.Errorf("%s of a store that refuses: got %d", target, got.Status)
		}
	}
}

// TestRefusedCheck: a check of a set is refused like the set.
func TestRefusedCheck(t *testing.T) {
	o := refusing()
	o.CheckChange = func(_ context.Context, c webhookcfg.Change) error {
		if c.Scope.IsAll() {
			return overLimit
		}
		return nil
	}
	h := newHandler(t, newRecorder(), o)
	if err := h.Check(t.Context(), "acme", webhookcfg.Entity("e1"), hookURL); err != nil {
		t.Error(err)
	}
	e, ok := errors.AsType[*webhookcfg.Error](h.Check(t.Context(), "acme", webhookcfg.All(), hookURL))
	if !ok || e.Status != http.StatusForbidden || e.Code != overLimit.Code {
		t.Errorf("got %v", e)
	}
}

// TestCheckChangeOrder: the host is asked about changes that pass all other checks, but before
// the probe calls anybody.
func TestCheckChangeOrder(t *testing.T) {
	var asked []string
	o := refusing()
	o.ProbeMode = webhookcfg.ProbeEnforce
	o.Prober = prober(func(context.Context, string, egress.URL) error { asked = append(asked, "probe"); return nil })
	o.EntityExists = func(_ context.Context, _, entity string) (bool, error) { return entity != "unknown", nil }
	o.AllScope = webhookcfg.AllScopeRefused
	o.CheckChange = func(context.Context, webhookcfg.Change) error { asked = append(asked, "CheckChange"); return nil }
	st := newRecorder()
	h := newHandler(t, st, o)
	for _, tt := range []struct {
		scope  webhookcfg.Scope
		url    string
		status int
		asked  []string
	}{
		{webhookcfg.Entity("e1"), hookURL, 200, []string{"CheckChange", "probe"}},
		{webhookcfg.Entity("e1"), "", 200, []string{"CheckChange"}},
		{webhookcfg.Entity("e1"), "https://10.0.0.1/", 400, nil},
		{webhookcfg.Entity("unknown"), hookURL, 404, nil},
		{webhookcfg.Entity("unknown"), "", 404, nil},
		{webhookcfg.All(), hookURL, 403, nil},
		{webhookcfg.All(), "", 403, nil},
	} {
		asked = nil
		if w := overWire(h, t.Context(), tt.scope, tt.url); w.Code != tt.status {
			t.Errorf("%v %q: got %d %s", tt.scope, tt.url, w.Code, w.Body)
		}
		if diff := cmp.Diff(tt.asked, asked); diff != "" {
			t.Errorf("%v %q: -want +got:\n%s", tt.scope, tt.url, diff)
		}
	}
}

// TestRefusalList: the list holds only responses that clients can tell from all others.
func TestRefusalList(t *testing.T) {
	refusal := func(code, text string) []webhookcfg.Refusal {
		return []webhookcfg.Refusal{{Code: code, Description: text}}
	}
	const text = "A text"
	longest := strings.Repeat("a", 64)
	for _, tt := range []struct {
		name string
		list []webhookcfg.Refusal
		want string
	}{
		{"no code", refusal("", text), `code ""`},
		{"upper case", refusal("Full", text), `code "Full"`},
		{"digit first", refusal("1st", text), `code "1st"`},
		{"hyphen", refusal("too-many", text), `code "too-many"`},
		{"space", refusal("too many", text), `code "too many"`},
		{"line break", refusal("full\n", text), `code "full\n"`},
		{"quote", refusal(`full"`, text), "code"},
		{"long code", refusal(longest+"a", text), "code"},
		{"the handler's own", refusal("all_refused", text), `"all_refused" is the handler's own`},
		{"another of its own", refusal("temporarily_unavailable", text), "the handler's own"},
		{"twice", append(refusal("full", text), refusal("full", "Another")...), "twice"},
		{"no text", refusal("full", ""), `description of "full"`},
		{"quote in text", refusal("full", `a "b"`), "description"},
		{"backslash in text", refusal("full", `a\b`), "description"},
		{"line break in text", refusal("full", "a\r\nb"), "description"},
		{"beyond ASCII in text", refusal("full", "é"), "description"},
		{"long text", refusal("full", strings.Repeat("a", 257)), "description"},
		{"none", nil, "CheckChange without Refusals"},
	} {
		o := options()
		o.Refusals = tt.list
		o.CheckChange = func(context.Context, webhookcfg.Change) error { return nil }
		_, err := webhookcfg.NewHandler(newRecorder(), verifier(verify), o)
		if err == nil || !strings.HasPrefix(err.Error(), "webhookcfg: ") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want an error about %s", tt.name, err, tt.want)
		}
	}
	o := options() // the store alone can refuse
	o.Refusals = append(refusal(longest, strings.Repeat("a", 256)), refusal("a_1", "!#[]~ '")...)
	newHandler(t, newRecorder(), o)
}

// TestRefusalsAreCopied: nobody changes what a handler says after it was made.
func TestRefusalsAreCopied(t *testing.T) {
	o := refusing()
	o.VariantAliases = []string{"/short"}
	h := newHandler(t, faulty{newRecorder(), func(context.Context) error { return overLimit }}, o)
	before := string(h.OpenAPI())
	clear(o.Refusals)
	clear(o.VariantAliases)
	clear(h.Options().Refusals)
	clear(h.Options().VariantAliases)
	if w := overWire(h, t.Context(), webhookcfg.All(), ""); w.Code != http.StatusForbidden {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if diff := cmp.Diff(before, string(h.OpenAPI())); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
}

// TestRefusalThroughWrappers: a refusal of a store reaches the client through our own wrappers.
func TestRefusalThroughWrappers(t *testing.T) {
	key, err := sealed.NewKey("k1", bytes.Repeat([]byte{1}, 32))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.SharedKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	encrypted, err := sealed.New(faulty{newRecorder(), func(context.Context) error { return fmt.Errorf("full: %w", overLimit) }}, keys, nil)
	if err != nil {
		t.Fatal(err)
	}
	copied, err := cache.New(encrypted, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	for _, st := range []webhookcfg.Store{encrypted, copied.Store()} {
		for _, target := range []string{"", hookURL} {
			if w := overWire(newHandler(t, st, refusing()), t.Context(), webhookcfg.All(), target); w.Code != http.StatusForbidden || errorCode(w.Body.String()) != overLimit.Code {
				t.Errorf("%T, %q: got %d %s", st, target, w.Code, w.Body)
			}
		}
	}
}
