package portal_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

// full is a host's reason to refuse a change. The pages have an error of their own with that name.
var full = webhookcfg.Refusal{Code: "confirm", Description: "The plan <S> is full"}

// refusingStore refuses every change.
type refusingStore struct{ webhookcfg.Store }

func (refusingStore) Apply(context.Context, webhookcfg.Change) error { return full }

func (s refusingStore) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	return s.Store.(webhookcfg.Lister).List(ctx, client, after, limit)
}

// TestErrors: each refusal is a sentence that says how to go on. The page keeps the fields
// that were typed, and changes nothing.
func TestErrors(t *testing.T) {
	broken := errors.New("broken on purpose")
	type setting struct {
		name   string
		break_ func(f *fixture)
		path   string
		fields []string
		status int
		texts  []string
	}
	set := []string{"id", "e1", "url", hookURL}
	kept := html.EscapeString(hookURL)
	tests := []setting{
		{"malformed id", nil, "set", []string{"id", "e 1", "url", hookURL}, 400, []string{"Correct it", "An identifier is 1 to 128", `value="e 1"`, kept}},
		{"URL refused", nil, "set", []string{"id", "e1", "url", "http://10.0.0.1/x"}, 400, []string{"This URL isn&#39;t allowed", "must be absolute", "http://10.0.0.1/x", `<h1 class="id" dir="auto">e1</h1>`}},
		{"URL of all refused", nil, "all", []string{"url", "nonsense", "confirm", "all"}, 400, []string{"This URL isn&#39;t allowed", `value="nonsense"`, `value="all"`}},
		{"unreachable", func(f *fixture) {
			f.handler.ProbeMode, f.handler.Prober = webhookcfg.ProbeEnforce, proberFunc(func() error { return broken })
		}, "set", set, 400, []string{"couldn&#39;t be reached", "Check that it runs", kept}},
		{"probes throttled", func(f *fixture) {
			f.handler.ProbeMode, f.handler.Prober = webhookcfg.ProbeEnforce, proberFunc(func() error { return waitError(1500 * time.Millisecond) })
		}, "set", set, 429, []string{"Too many attempts", "Try again in 2 s.", kept}},
		{"unknown entity", func(f *fixture) {
			f.handler.EntityExists = func(context.Context, string, string) (bool, error) { return false, nil }
		}, "set", set, 404, []string{"There is no entity with this ID", `value="e1"`, kept}},
		{"catalogue down", func(f *fixture) {
			f.handler.EntityExists = func(context.Context, string, string) (bool, error) { return false, broken }
		}, "set", set, 503, []string{"do this right now", `value="e1"`, kept}},
		{"store down", func(f *fixture) { f.store = brokenStore{f.store} }, "set", set, 503, []string{"do this right now", "tell whether the change was made", "!nothing was changed", "Send it again", `action="?page=set"`, `value="e1"`, kept}},
		{"store down for all", func(f *fixture) { f.store = brokenStore{f.store} }, "all", []string{"url", hookURL, "confirm", "all"}, 503, []string{"tell whether the change was made", "!nothing was changed", `action="?page=all"`, kept, `name="confirm" value="all"`}},
		{"store down for a test", func(f *fixture) {
			f.store = brokenStore{f.store}
			f.portal.Test = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "", nil }
		}, "test-all", nil, 503, []string{"do this right now", "!tell whether"}},
		{"defect", func(f *fixture) {
			f.handler.EntityExists = func(_ context.Context, _, _ string) (bool, error) { panic("on purpose") }
		}, "set", set, 500, []string{"wrong on our side", kept}},
		{"all refused", func(f *fixture) { f.handler.AllScope = webhookcfg.AllScopeRefused }, "all", []string{"url", hookURL, "confirm", "all"}, 403, []string{"Set each entity by itself"}},
		{"all refused by the portal", func(f *fixture) { f.portal.OneOnly = true }, "unset-all", []string{"confirm", "all"}, 403, []string{"Set each entity by itself"}},
		{"refused by the host", func(f *fixture) {
			f.handler.Refusals = []webhookcfg.Refusal{full}
			f.handler.CheckChange = func(context.Context, webhookcfg.Change) error { return fmt.Errorf("%w: %w", broken, full) }
		}, "set", set, 403, []string{"This change was refused. Nothing was changed.", "The plan &lt;S&gt; is full", "!broken", "!tell whether", `value="e1"`, kept}},
		{"refused by the store", func(f *fixture) {
			f.handler.Refusals = []webhookcfg.Refusal{full}
			f.store = refusingStore{f.store}
		}, "all", []string{"url", hookURL, "confirm", "all"}, 403, []string{"This change was refused. Nothing was changed.", "The plan &lt;S&gt; is full", `value="all"`, kept}},
		{"refused in the person's language", func(f *fixture) {
			f.handler.Refusals = []webhookcfg.Refusal{full}
			f.store = refusingStore{f.store}
			f.portal.Text = func(_ *http.Request, key string) string {
				return map[string]string{"error.refused": "Abgelehnt", "refusal.confirm": "Der Tarif ist voll: 100%"}[key]
			}
		}, "unset", []string{"id", "e1"}, 403, []string{"Abgelehnt", "Der Tarif ist voll: 100%", "!The plan"}},
		{"refused with a reason that isn't listed", func(f *fixture) { f.store = refusingStore{f.store} }, "set", set, 500, []string{"wrong on our side", "!The plan"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			kept := f.store
			if tt.break_ != nil {
				tt.break_(f)
			}
			p := f.serve(t)
			p.signIn()
			got := p.post(tt.path, tt.fields...)
			got.expect(t, tt.status, append(tt.texts, `role="alert"`, "Signed in as")...)
			f.store = kept
			if got := f.resolved(t, "e1"); got != "none" {
				t.Errorf("changed: %s", got)
			}
		})
	}
}

// TestAllCodes: each error code has its sentence.
func TestAllCodes(t *testing.T) {
	source, err := os.ReadFile("../error.go")
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`code{\d+, "(.*)"}`).FindAllSubmatch(source, -1)
	if len(declared) == 0 {
		t.Fatal("error.go declares no code")
	}
	for _, code := range declared {
		if portal.Texts()["error."+string(code[1])] == "" {
			t.Errorf("no text for %s", code[1])
		}
	}
}

// TestHeadingOfProblem: a link can't choose the heading of a page that says what is wrong.
func TestHeadingOfProblem(t *testing.T) {
	f, _, _ := complete(t)
	p := f.serve(t)
	p.signIn()
	for _, path := range pagePaths {
		if slices.Contains(routes[path].Query, "id") {
			if page := p.get(path + "?id=Call+us:+555"); !strings.Contains(page.text, "<h1>Webhooks</h1>") || strings.Contains(page.text, ">Call us") {
				t.Errorf("%s: %s", path, page.text)
			}
		}
	}
}
