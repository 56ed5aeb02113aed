package portal_test

import (
	"context"
	"errors"
	"fmt"
	"html"
	"html/template"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

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
		"frame ancestors": {SignIn: &portal.SignIn{}, FrameAncestors: "'self'; script-src *"},
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
	p.post("sign-in", "username", acme, "password", "wrong-secret-12345", "then", "").expect(t, http.StatusForbidden, "The ID or the secret is wrong", `value="acme"`, "!wrong-secret")
	in := p.signIn()
	in.expect(t, http.StatusOK, "Signed in as", "There is no default", "No entity has a setting")
	if in.at != "" {
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
	p.post("unset", "id", "e1").expect(t, http.StatusOK, "The entity is turned off.", "whatever the default is", "!Turn off")
	p.get("").expect(t, http.StatusOK, `href="entity?id=e1"`, `<span class="state off">Off</span>`, address)
	p.post("unset-all", "confirm", "all").expect(t, http.StatusOK, "Everything is removed.")
	p.get("entity?id=e1").expect(t, http.StatusOK, "Nothing is set for this entity")
	p.post("set", "id", "", "url", hookURL).expect(t, http.StatusBadRequest, "Type the ID of an entity", html.EscapeString(hookURL))
	if got := f.resolved(t, "e2"); got != "none" {
		t.Errorf("a set without an ID reached all: %s", got)
	}
	out := p.post("sign-out")
	if !out.isSignIn() || out.at != "" || p.cookie("__Host-webhooks") != "" {
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

// TestHeader: no response is stored, runs a script, can be framed or leaks where it was.
func TestHeader(t *testing.T) {
	p := newFixture(t).serve(t)
	p.signIn()
	for _, path := range []string{"", "entity?id=e1", "all", "nothing", "style.css"} {
		header := p.get(path).header
		cached := "no-store"
		if path == "style.css" {
			cached = "max-age=300"
		}
		want := map[string]string{
			"Cache-Control": cached, "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
			"Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		}
		for field, value := range want {
			if got := header.Get(field); got != value {
				t.Errorf("%s: %s: %s", path, field, got)
			}
		}
		if header.Get("WWW-Authenticate") != "" {
			t.Errorf("%s opens a prompt", path)
		}
	}
	f := newFixture(t)
	f.portal.FrameAncestors = "https://app.example.com"
	if got := f.serve(t).get("").header.Get("Content-Security-Policy"); !strings.HasSuffix(got, "frame-ancestors https://app.example.com") {
		t.Errorf("the option: %s", got)
	}
}

// TestUnservedRequests: a request that no page makes gets a page, and changes nothing.
func TestUnservedRequests(t *testing.T) {
	f := newFixture(t)
	p := f.serve(t)
	p.signIn()
	p.get("nothing").expect(t, http.StatusNotFound, "There is no such page")
	p.get("set/").expect(t, http.StatusNotFound, "There is no such page")
	if got := p.get("sign-out"); got.at != "" || got.status != http.StatusOK {
		t.Errorf("GET of sign-out: %d at %s", got.status, got.at)
	}
	p.get("set?id=e1&url="+hookURL).expect(t, http.StatusOK, "Nothing is set")
	for _, path := range []string{"", "entity", "key"} {
		got := p.post(path, "id", "e1")
		got.expect(t, http.StatusMethodNotAllowed, "can&#39;t be used like this")
		if got.header.Get("Allow") == "" {
			t.Errorf("%s: no Allow", path)
		}
	}
	p.do(p.request("DELETE", "set")).expect(t, http.StatusMethodNotAllowed, "can&#39;t be used like this")
	r := p.request("POST", "set", "id", "e1", "url", hookURL)
	r.Header.Set("Content-Type", "text/plain")
	p.do(r).expect(t, http.StatusUnsupportedMediaType, "can&#39;t be read")
	p.post("set", "id", "e1", "url", hookURL+strings.Repeat("x", 20000)).expect(t, http.StatusRequestEntityTooLarge, "too long")
	r = p.request("POST", "set?%zz")
	p.do(r).expect(t, http.StatusBadRequest, "Correct it")
	p.get("key").expect(t, http.StatusNotFound, "There is no such page")
	p.post("test", "id", "e1").expect(t, http.StatusNotFound, "There is no such page")
	if got := f.resolved(t, "e1"); got != "none" {
		t.Errorf("changed: %s", got)
	}
}

// TestWithoutSlash: routers such as chi and gorilla serve a mount at its path without the
// slash, and at paths that only start like it. No form there leads out of the portal.
func TestWithoutSlash(t *testing.T) {
	pages := newFixture(t).new(t)
	for target, want := range map[string]string{
		"/my/portal":                              "303 ./portal/",
		"/my/portal?id=e%31&x":                    "303 ./portal/?id=e%31&x",
		"http://host/my/portal?id=e1":             "303 ./portal/?id=e1",
		"/my/portal/":                             "403 ",
		"/my/portal/?id=e1":                       "403 ",
		"/my/portal/%65ntity":                     "403 ",
		"/my/portal%2f":                           "303 ./portal%2f/",
		"/my/portal%2f/":                          "404 ",
		"/my/portal%2Fentity":                     "404 ",
		"/my/portal%2fsign-in":                    "404 ",
		"/my/portalentity":                        "404 ",
		"/my/portalsign-in":                       "404 ",
		"/my/portal//":                            "404 ",
		"/my/portal//entity":                      "404 ",
		"/my/portal?" + strings.Repeat("x", 4097): "414 ",
	} {
		w := httptest.NewRecorder()
		http.StripPrefix("/my/portal", pages).ServeHTTP(w, httptest.NewRequest("GET", target, nil))
		if got := fmt.Sprint(w.Code, " ", w.Header().Get("Location")); got != want {
			t.Errorf("%s: got %q, want %q", target, got, want)
		}
	}
	w := httptest.NewRecorder()
	http.StripPrefix("/my/portal", pages).ServeHTTP(w, httptest.NewRequest("POST", "/my/portal", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a POST: got %d", w.Code)
	}
}

// TestLongQuery: a long query gets a short page, also from people who aren't signed in.
func TestLongQuery(t *testing.T) {
	p := newFixture(t).serve(t)
	fits := "?id=" + strings.Repeat("%22", (4<<10-3)/3)
	p.get(fits).expect(t, http.StatusForbidden, "&#34;&#34;")
	for _, path := range []string{"", "sign-in", "set", "style.css", "nothing"} {
		for _, method := range []string{"GET", "POST"} {
			got := p.do(p.request(method, path+fits+"%22", "id", "e1", "url", hookURL))
			got.expect(t, http.StatusRequestURITooLong, "The address of this page is too long", "!%22", "!&#34;&#34;")
		}
	}
	p.get("?id=%zz").expect(t, http.StatusBadRequest, "Correct it")
}

// TestLongIdentifier: a change of an entity whose identifier fits no address leads to the
// overview.
func TestLongIdentifier(t *testing.T) {
	f := newFixture(t)
	f.handler.ValidEntityID = func(string) bool { return true }
	p := f.serve(t)
	p.signIn()
	id := strings.Repeat("ü", 1000)
	p.post("set", "id", id, "url", hookURL).expect(t, http.StatusOK, "The webhook is set.", ">"+id+"<", "<h2 id=\"base\">")
	if got := f.resolved(t, id); got != "override "+hookURL {
		t.Errorf("set %s", got)
	}
}

// TestLinks: a link fills in no field, except for the identifier of the page that it leads to.
func TestLinks(t *testing.T) {
	const link = "all?id=e1&username=mallory&url=https%3A%2F%2Fmallory.example.com&confirm=all&again=1"
	p := newFixture(t).serve(t)
	p.get(link).expect(t, http.StatusForbidden, `name="id" value="e1"`, "!mallory", `!name="confirm"`, `!name="again"`)
	p.signIn()
	p.get(link).expect(t, http.StatusOK, "!mallory", `!value="all"`)
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
		}, "set", set, 400, []string{"couldn&#39;t be reached", "Check that your server runs", kept}},
		{"probes throttled", func(f *fixture) {
			f.handler.ProbeMode, f.handler.Prober = webhookcfg.ProbeEnforce, proberFunc(func() error { return waitError(1500 * time.Millisecond) })
		}, "set", set, 429, []string{"Too many attempts", "Try again in 2 s.", kept}},
		{"unknown entity", func(f *fixture) {
			f.handler.EntityExists = func(context.Context, string, string) (bool, error) { return false, nil }
		}, "set", set, 404, []string{"There is no entity with this ID", `value="e1"`, kept}},
		{"catalogue down", func(f *fixture) {
			f.handler.EntityExists = func(context.Context, string, string) (bool, error) { return false, broken }
		}, "set", set, 503, []string{"do this right now", `value="e1"`, kept}},
		{"store down", func(f *fixture) { f.store = brokenStore{f.store} }, "set", set, 503, []string{"do this right now", "tell whether the change was made", "!nothing was changed", "Send it again", `action="set"`, `value="e1"`, kept}},
		{"store down for all", func(f *fixture) { f.store = brokenStore{f.store} }, "all", []string{"url", hookURL, "confirm", "all"}, 503, []string{"tell whether the change was made", "!nothing was changed", `action="all"`, kept, `name="confirm" value="all"`}},
		{"defect", func(f *fixture) {
			f.handler.EntityExists = func(_ context.Context, _, _ string) (bool, error) { panic("on purpose") }
		}, "set", set, 500, []string{"wrong on our side", kept}},
		{"all refused", func(f *fixture) { f.handler.AllScope = webhookcfg.AllScopeRefused }, "all", []string{"url", hookURL, "confirm", "all"}, 403, []string{"Set each entity by itself"}},
		{"all refused by the portal", func(f *fixture) { f.portal.OneOnly = true }, "unset-all", []string{"confirm", "all"}, 403, []string{"Set each entity by itself"}},
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

// TestAllCodes: each error of the wire has its sentence.
func TestAllCodes(t *testing.T) {
	for _, code := range []string{
		"invalid_request", "invalid_webhook_url", "webhook_unreachable", "invalid_client", "all_refused", "not_found", "unknown_entity",
		"method_not_allowed", "request_too_large", "unsupported_media_type", "too_many_requests", "server_error", "temporarily_unavailable",
	} {
		if portal.Texts()["error."+code] == "" {
			t.Errorf("no text for %s", code)
		}
	}
}

// proberFunc is a prober.
type proberFunc func() error

func (f proberFunc) Probe(context.Context, string, egress.URL) error { return f() }

// waitError asks to wait.
type waitError time.Duration

func (waitError) Error() string               { return "busy" }
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

// TestHostileTexts: identifiers, URLs, actors and searches stay text, with any characters,
// and come back unchanged.
func TestHostileTexts(t *testing.T) {
	const script = `"><script>alert(1)</script>`
	for _, id := range []string{script, `{{.Client}}`, `a b&c=d#e?f%2f+g`, `javascript:alert(1)`, `'onfocus='x`, "&lt;b&gt;", "\u202eevil"} {
		t.Run(id, func(t *testing.T) {
			f := newFixture(t).hosted()
			client := f.portal.Client
			f.portal.Client = func(r *http.Request) (string, string, error) {
				client, _, err := client(r)
				return client, id, err
			}
			f.handler.ValidEntityID = func(string) bool { return true }
			p := f.serve(t)
			p.setCookie("session", "ann")
			if strings.Contains(id, "/") { // which no identifier has
				got := p.post("set", "id", id, "url", id)
				got.expect(t, http.StatusBadRequest, "!"+id)
				id = strings.ReplaceAll(id, "/", "")
			}
			got := p.post("set", "id", id, "url", hookURL)
			got.expect(t, http.StatusOK, "!<script", "!<b>")
			if got := f.resolved(t, id); got != "override "+hookURL {
				t.Errorf("set %s", got)
			}
			list := p.get("")
			list.expect(t, http.StatusOK, "!<script", "!<b>")
			for _, page := range []shown{got, list} {
				page.text = html.UnescapeString(page.text)
				page.expect(t, http.StatusOK, ">"+id+"<")
			}
			p.do(p.request("GET", got.at)).expect(t, http.StatusOK, "has a webhook of its own")
			bad := p.post("set", "id", id, "url", "javascript:"+script)
			bad.expect(t, http.StatusBadRequest, "This URL isn&#39;t allowed", "!<script", "javascript:&#34;&gt;")
			next := p.post("unset", "id", id)
			next.expect(t, http.StatusOK, "is turned off.", "!<script")
		})
	}
}

// TestPages: overrides come 25 a page, are found by the start of their identifiers, and are
// counted up to a thousand.
func TestPages(t *testing.T) {
	f := newFixture(t)
	f.store = shortPages{f.store.(lister)}
	changes := []webhookcfg.Change{hooktest.SetAll(acme, 1)}
	for i := range 1003 {
		changes = append(changes, hooktest.Set(acme, fmt.Sprintf("e%04d", i), i+2))
	}
	changes = append(changes, hooktest.Unset(acme, "e00", 2000))
	hooktest.Apply(t, f.store, changes...)
	p := f.serve(t)
	p.signIn()
	seen, pages := map[string]bool{}, 0
	for path := ""; ; pages++ {
		page := p.get(path)
		for _, part := range strings.Split(page.text, `href="entity?id=`)[1:] {
			id, _, _ := strings.Cut(part, `"`)
			seen[id] = true
		}
		_, rest, more := strings.Cut(page.text, `<a rel="next" href="`)
		if !more {
			break
		}
		path, _, _ = strings.Cut(rest, `"`)
		path = html.UnescapeString(path)
	}
	if len(seen) != 1004 || pages != 40 {
		t.Errorf("saw %d on %d pages", len(seen), pages+1)
	}
	p.get("all").expect(t, http.StatusOK, "more than 1000 have their own")
	found := p.get("?find=e00")
	found.expect(t, http.StatusOK, ">e00<", ">e0000<", "find=e00&amp;after=e0023", "!>e0100<", "?find=e00")
	p.get("?find=e00&after=e0074").expect(t, http.StatusOK, ">e0099<", "!>e0100<", "!rel=\"next\"", "!>e00<")
	p.get("?find=e0042").expect(t, http.StatusOK, ">e0042<", "!>e0043<", `href="entity?id=e0042"`)
	p.get("?find=x").expect(t, http.StatusOK, "has an ID that starts like this", `href="entity?id=x"`)
	p.get("?find=a/b").expect(t, http.StatusBadRequest, "Correct it")
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

// TestDeliveries: pages show how deliveries go, and how to repair them. Even with an unknown
// state, you can change a webhook.
func TestDeliveries(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := map[string]struct {
		status webhookcfg.DeliveryStatus
		err    error
		want   []string
	}{
		"none":    {webhookcfg.DeliveryStatus{}, nil, []string{"No deliveries yet", "!Last success"}},
		"ok":      {webhookcfg.DeliveryStatus{State: "ok", LastSuccess: at}, nil, []string{"Delivered", "Last success: 2026-01-02 03:04 UTC", "Last failure: never"}},
		"failing": {webhookcfg.DeliveryStatus{State: "failing", Reason: "status", LastFailure: at}, nil, []string{"Failing", "Your server responded with an error.", "with the next notification at the latest."}},
		"stopped": {webhookcfg.DeliveryStatus{State: "stopped", Reason: "gone", LastFailure: at}, nil, []string{"Stopped", "is gone (410)", "then set the webhook again"}},
		"refused": {webhookcfg.DeliveryStatus{State: "stopped", Reason: "refused"}, nil, []string{"Stopped", "no longer allow", "ask us why"}},
		"no word": {webhookcfg.DeliveryStatus{State: "sleeping"}, nil, []string{"Not known right now", "!sleeping"}},
		"unknown": {webhookcfg.DeliveryStatus{}, fmt.Errorf("no record of %s", hookURL), []string{"Not known right now", "Starts with https://"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var records strings.Builder
			f.handler.Logger = textLogger(&records)
			f.handler.DeliveryStatus = func(_ context.Context, client, entity string, hook webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
				if client != acme || (entity == "") != (hook.Source == webhookcfg.SourceBase) && entity != "e2" {
					t.Errorf("asked for %q %q %v", client, entity, hook.Source)
				}
				return tt.status, tt.err
			}
			set := func(scope webhookcfg.Scope) webhookcfg.Change {
				return hooktest.At(1, webhookcfg.SetChange(acme, scope, egress.NewURL(hookURL)))
			}
			hooktest.Apply(t, f.store, set(webhookcfg.All()), set(webhookcfg.Entity("e1")))
			p := f.serve(t)
			p.signIn()
			for _, path := range []string{"entity?id=e1", "entity?id=e2", "all", ""} {
				page := p.get(path)
				page.text = html.UnescapeString(page.plain())
				page.expect(t, http.StatusOK, tt.want...)
			}
			if strings.Contains(records.String(), "t0ken") || strings.Contains(records.String(), "no record") != (tt.err != nil) {
				t.Errorf("logged %s", &records)
			}
		})
	}
}

// TestTest sends tests.
func TestTest(t *testing.T) {
	tests := map[string]struct {
		reason string
		err    error
		status int
		want   string
	}{
		"accepted":  {"", nil, 200, "The test was accepted by your server."},
		"refused":   {"status", nil, 200, "The test failed. Your server responded with an error."},
		"too often": {"", waitError(9 * time.Second), 429, "A test was sent a moment ago, or your server asked for a pause. Try again in 9 s."},
		"soon":      {"", waitError(1100 * time.Millisecond), 429, "Try again in 2 s."},
		"never":     {"", waitError(math.MaxInt64), 429, "Try again in 9223372037 s."},
		"down":      {"", errBroken, 503, "We can't do this right now."},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			var tested []string
			f.portal.Test = func(_ context.Context, client, entity string) (string, error) {
				tested = append(tested, client+" "+entity)
				return tt.reason, tt.err
			}
			f.handler.EntityExists = func(_ context.Context, _, entity string) (bool, error) { return entity != "foreign", nil }
			f.handler.DeliveryStatus = func(context.Context, string, string, webhookcfg.Webhook) (webhookcfg.DeliveryStatus, error) {
				return webhookcfg.DeliveryStatus{State: "stopped", Reason: "gone"}, nil
			}
			hooktest.Apply(t, f.store, hooktest.SetAll(acme, 1), hooktest.Set(acme, "e1", 2))
			p := f.serve(t)
			p.signIn()
			for _, path := range []string{"", "all", "entity?id=e1"} {
				p.get(path).expect(t, http.StatusOK, "Send a test", "Repair your server, then send a test", "!set the webhook again")
			}
			for _, page := range []shown{p.post("test", "id", "e1"), p.post("test")} {
				page.text = html.UnescapeString(page.plain())
				page.expect(t, tt.status, tt.want)
			}
			p.post("test", "id", "foreign").expect(t, http.StatusNotFound, "There is no entity with this ID")
			if diff := cmp.Diff([]string{"acme e1", "acme "}, tested); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestOneOnly: nothing on a page reaches all entities.
func TestOneOnly(t *testing.T) {
	for name, set := range map[string]func(*fixture){
		"portal":  func(f *fixture) { f.portal.OneOnly = true },
		"handler": func(f *fixture) { f.handler.AllScope = webhookcfg.AllScopeRefused },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			set(f)
			p := f.serve(t)
			p.signIn()
			p.get("").expect(t, http.StatusOK, `!href="all"`, "!Default")
			p.get("all").expect(t, http.StatusOK, "!confirm")
			hooktest.Apply(t, f.store, hooktest.SetAll(acme, 1))
			p.get("").expect(t, http.StatusOK, `!href="all"`, "Default")
		})
	}
}

// TestHostParts: the key, the texts and the layout of the host.
func TestHostParts(t *testing.T) {
	f := newFixture(t)
	f.portal.SigningKey = func(_ context.Context, client string) (string, error) { return "whsec_" + client, nil }
	f.portal.Text = func(r *http.Request, key string) string {
		if r.Header.Get("Accept-Language") != "de" {
			return ""
		}
		return map[string]string{"lang": "de", "title": "Webhooks auf Deutsch", "base.none": "100 % leer", "all.more": "über %d"}[key]
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
	f.portal.SigningKey = func(context.Context, string) (string, error) { return "", errBroken }
	f.portal.Layout = nil
	p = f.serve(t)
	p.signIn()
	p.get("key").expect(t, http.StatusServiceUnavailable, "do this right now")
	r = p.request("GET", "")
	r.Header.Set("Accept-Language", "de")
	p.do(r).expect(t, http.StatusOK, `<html lang="de">`)
}

// TestSourceOfHost: an address that the host found is not replaced by the connection's.
func TestSourceOfHost(t *testing.T) {
	f := newFixture(t)
	var source netip.Addr
	f.handler.OnEvent = func(_ context.Context, e webhookcfg.Event) { source = e.Source }
	h := f.new(t)
	r := httptest.NewRequest("POST", "/sign-in", strings.NewReader("username=acme&password=x&then="))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	h.ServeHTTP(httptest.NewRecorder(), r.WithContext(webhookcfg.ContextWithSource(r.Context(), netip.MustParseAddr("2001:db8::1"))))
	if source.String() != "2001:db8::1" {
		t.Errorf("the source is %v", source)
	}
}
