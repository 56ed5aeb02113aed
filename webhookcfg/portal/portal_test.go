package portal_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"html/template"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/portal"
	"github.com/google/go-cmp/cmp"
)

func TestNewRefuses(t *testing.T) {
	h := hooktest.NewHandler(t, newFixture(t).store, newFixture(t).verifier, nil)
	client := newFixture(t).hosted().portal.Client
	for name, o := range map[string]*portal.Options{
		"no options":      nil,
		"no way in":       {},
		"two ways in":     {Client: client, SignInURL: "/login", SignIn: &portal.SignIn{}},
		"no SignInURL":    {Client: client},
		"SignInURL alone": {SignIn: &portal.SignIn{}, SignInURL: "/login"},
		"short key":       {SignIn: &portal.SignIn{Keys: [][]byte{make([]byte, 32), make([]byte, 16)}}},
	} {
		if _, err := portal.New(h, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := portal.New(nil, &portal.Options{SignIn: &portal.SignIn{}}); err == nil {
		t.Error("no handler: no error")
	}
	f := newFixture(t)
	h = hooktest.NewHandler(t, struct{ webhookcfg.Store }{f.store}, f.verifier, nil)
	if _, err := portal.New(h, &f.portal); err == nil || !strings.Contains(err.Error(), "Lister") {
		t.Errorf("a store without a list: %v", err)
	}
}

// TestTour makes each change and sees its effect, below a prefix that a mux strips.
func TestTour(t *testing.T) {
	f := newFixture(t)
	var mu sync.Mutex
	var events []string
	f.handler.OnEvent = func(_ context.Context, e webhookcfg.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Operation == "set" || e.Operation == "unset" {
			events = append(events, fmt.Sprint(e.Operation, " ", e.Client, " ", e.Scope, " by ", e.Actor, " from ", e.Source))
		}
	}
	p := f.serve(t)
	first := p.get("")
	first.expect(t, http.StatusForbidden, "<h1>Sign in</h1>", "!role=\"alert\"")
	if !first.isSignIn() {
		t.Error("not the sign-in page")
	}
	p.post("sign-in", "username", acme, "password", "wrong-secret-12345", "then", "overview").expect(t, http.StatusForbidden, "The ID or the secret is wrong", `value="acme"`, "!wrong-secret")
	in := p.signIn()
	in.expect(t, http.StatusOK, "Signed in as", "There is no default", "No entity has a setting")
	if in.at != "overview" {
		t.Errorf("at %s", in.at)
	}
	set := p.post("set", "id", "e1", "url", " "+hookURL+"\r\n")
	set.expect(t, http.StatusOK, "The webhook is set.", "has a webhook of its own", "<h1 class=\"id\" dir=\"auto\">e1</h1>", address, "!t0ken", "!s3cret")
	if set.at != "entity?id=e1" {
		t.Errorf("at %s", set.at)
	}
	p.get("entity?id=e1&show=1").expect(t, http.StatusOK, html.EscapeString(hookURL), "Hide it")
	p.get("all").expect(t, http.StatusOK, "settings of single entities: 1 have their own")
	p.post("all", "url", otherURL, "confirm", "ALL").expect(t, http.StatusBadRequest, "type the word all", otherURL, `value="ALL"`)
	p.post("unset-all", "confirm", "").expect(t, http.StatusBadRequest, "type the word all")
	if got := f.resolved(t, "e1"); got != "override "+hookURL {
		t.Errorf("without the word: %s", got)
	}
	p.post("all", "url", otherURL, "confirm", "all ").expect(t, http.StatusOK, "The default is set for all entities.", "!have their own")
	p.get("entity?id=e1").expect(t, http.StatusOK, "so the default applies")
	p.post("unset", "id", "e1").expect(t, http.StatusOK, "This entity has no webhook now.", "whatever the default is", "!Turn off")
	p.get("").expect(t, http.StatusOK, `href="?page=entity&amp;id=e1"`, `<span class="state off">Off</span>`, address)
	p.post("unset-all", "confirm", "all").expect(t, http.StatusOK, "The webhooks of all entities are removed.")
	p.get("entity?id=e1").expect(t, http.StatusOK, "Nothing is set for this entity")
	p.post("set", "id", "", "url", hookURL).expect(t, http.StatusBadRequest, "Type the ID of an entity", html.EscapeString(hookURL))
	if got := f.resolved(t, "e2"); got != "none" {
		t.Errorf("a set without an ID reached all: %s", got)
	}
	out := p.post("sign-out")
	if !out.isSignIn() || out.at != "overview" || p.cookie("__Host-webhooks") != "" {
		t.Errorf("signed out, at %q, with %q", out.at, p.cookie("__Host-webhooks"))
	}
	if back := p.get("entity?id=e1"); !back.isSignIn() {
		t.Error("Back after the sign-out shows a page")
	}
	want := []string{
		"set acme entity e1 by acme from 127.0.0.1", "set acme all by acme from 127.0.0.1",
		"unset acme entity e1 by acme from 127.0.0.1", "unset acme all by acme from 127.0.0.1",
	}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// proberFunc is a prober.
type proberFunc func() error

func (f proberFunc) Probe(context.Context, string, egress.URL) error { return f() }

// waitError asks to wait.
type waitError time.Duration

func (waitError) Error() string { return "busy" }

func (e waitError) RetryAfter() time.Duration { return time.Duration(e) }

// brokenStore is a store that is down.
type brokenStore struct{ webhookcfg.Store }

var errBroken = errors.New("broken on purpose")

func (brokenStore) Apply(context.Context, webhookcfg.Change) error { return errBroken }

func (brokenStore) Resolve(context.Context, string, string) (webhookcfg.Webhook, error) {
	return webhookcfg.Webhook{}, errBroken
}

func (brokenStore) List(context.Context, string, string, int) (webhookcfg.Page, error) {
	return webhookcfg.Page{}, errBroken
}

// lister is a store with a list.
type lister interface {
	webhookcfg.Store
	webhookcfg.Lister
}

// shortPages returns fewer overrides than it is asked for, as a Lister may.
type shortPages struct{ lister }

func (s shortPages) List(ctx context.Context, client, after string, limit int) (webhookcfg.Page, error) {
	return s.lister.List(ctx, client, after, min(limit, 400))
}

// TestHostParts: the key, the texts and the layout of the host.
func TestHostParts(t *testing.T) {
	f := newFixture(t)
	f.portal.SigningKey = func(_ context.Context, client, _ string, _ webhookcfg.Webhook) (string, error) {
		return "whsec_" + client, nil
	}
	f.portal.Text = func(r *http.Request, key string) string {
		if r.Header.Get("Accept-Language") != "de" {
			return ""
		}
		return map[string]string{"lang": "de", "title": "Webhooks auf Deutsch", "base.none": "100 % leer", "all.more": "ab %d"}[key]
	}
	f.portal.Layout = func(w http.ResponseWriter, r *http.Request, page portal.Page) {
		w.Header().Set("Layout", "host")
		w.WriteHeader(page.Status)
		fmt.Fprintf(w, "<title>%s</title><nav>host</nav>%s", template.HTMLEscapeString(page.Title), page.Content)
	}
	p := f.serve(t)
	if got := p.get(""); got.status != http.StatusForbidden || got.header.Get("Layout") != "host" {
		t.Errorf("got %d %v", got.status, got.header)
	}
	p.signIn()
	p.get("").expect(t, http.StatusOK, "<nav>host</nav><main", "!whsec", "Show the signing key", "!<!DOCTYPE")
	p.get("key").expect(t, http.StatusOK, "whsec_acme")
	r := p.request("GET", "")
	r.Header.Set("Accept-Language", "de")
	p.do(r).expect(t, http.StatusOK, "<title>Webhooks auf Deutsch</title>", "100 % leer", "No entity has a setting")
	f.portal.SigningKey = func(context.Context, string, string, webhookcfg.Webhook) (string, error) { return "", errBroken }
	f.portal.Layout = nil
	p = f.serve(t)
	p.signIn()
	p.get("key").expect(t, http.StatusServiceUnavailable, "do this right now")
	r = p.request("GET", "")
	r.Header.Set("Accept-Language", "de")
	p.do(r).expect(t, http.StatusOK, `<html lang="de">`)
}

// TestSigningKey: the key is that of the webhook that the person looks at. Nobody promises one
// before there's a webhook.
func TestSigningKey(t *testing.T) {
	f := newFixture(t)
	f.portal.SigningKey = func(_ context.Context, client, entity string, hook webhookcfg.Webhook) (string, error) {
		if hook.URL.IsZero() {
			return "", nil
		}
		return fmt.Sprintf("whsec_%s/%s/%s/%v", client, entity, hook.URL, hook.Source), nil
	}
	p := f.serve(t)
	p.signIn()
	p.get("key").expect(t, http.StatusOK, "There is no webhook.", "!whsec_", "!<dt>")
	p.get("key?id=e1").expect(t, http.StatusOK, "There is no webhook.", "<h1 class=\"id\" dir=\"auto\">e1</h1>")
	p.get("entity?id=e1").expect(t, http.StatusOK, "!Show the signing key")
	hooktest.Apply(t, f.store, hooktest.SetAll(acme, 1), webhookcfg.SetChange(acme, webhookcfg.Entity("own"), egress.NewURL("https://vendor.example/secret")))
	p.get("key").expect(t, http.StatusOK, "whsec_acme//https://hooks.example.com/base<", "!/1/xx")
	p.get("key?id=e1").expect(t, http.StatusOK, "whsec_acme/e1/https://hooks.example.com/base<")
	p.get("entity?id=own").expect(t, http.StatusOK, `href="?page=key&amp;id=own"`)
	p.get("key?id=own").expect(t, http.StatusOK, "whsec_acme/own/https://vendor.example/override<", "!secret")
	p.get("key?id=a/b").expect(t, http.StatusBadRequest, "!whsec_")
}

// TestSourceOfHost: an address that the host found is not replaced by the connection's.
func TestSourceOfHost(t *testing.T) {
	f := newFixture(t)
	var source netip.Addr
	f.handler.OnEvent = func(_ context.Context, e webhookcfg.Event) { source = e.Source }
	h := f.new(t)
	r := httptest.NewRequest("POST", "/?page=sign-in", strings.NewReader("username=acme&password=x&then=overview"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	h.ServeHTTP(httptest.NewRecorder(), r.WithContext(auth.ContextWithSource(r.Context(), netip.MustParseAddr("2001:db8::1"))))
	if source.String() != "2001:db8::1" {
		t.Errorf("the source is %v", source)
	}
}
