package portal_test

import (
	"context"
	"errors"
	"flag"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

// isFull runs the enumerations and histories in full. Without it, a sample of them takes seconds.
var isFull = flag.Bool("full", false, "run long tests in full, and not a sample")

const (
	acme     = "acme"
	secret   = "a-long-random-secret"
	address  = "https://hooks.example.com"
	hookURL  = address + "/in/t0ken?key=s3cret"
	otherURL = address + "/other/t0ken"
)

// fixture has the parts of a portal that a test can change.
type fixture struct {
	store    webhookcfg.Store
	verifier webhookcfg.CredentialVerifier
	handler  webhookcfg.Options
	portal   portal.Options
	around   func(next http.Handler) http.Handler // nil if nothing is
}

func newFixture(t *testing.T) *fixture {
	return &fixture{
		store:    store.NewMemory(),
		verifier: hooktest.NewVerifier(t, acme, secret),
		handler:  webhookcfg.Options{ProbeMode: webhookcfg.ProbeOff},
		portal:   portal.Options{SignIn: &portal.SignIn{}},
	}
}

// complete has a portal with all options, a webhook of acme for all and one for e1, and the
// queue. It counts the tests that were sent.
func complete(t *testing.T) (f *fixture, q *queue, tests *atomic.Int64) {
	f, q = withQueue(t)
	q.plan.Count = 3
	tests = new(atomic.Int64)
	f.portal.Test = func(context.Context, string, string, webhookcfg.Webhook) (string, error) {
		tests.Add(1)
		return "", nil
	}
	f.portal.Try = func(context.Context, string, string, egress.URL) (string, error) { tests.Add(1); return "", nil }
	f.portal.SigningKey = func(_ context.Context, client, entity string, _ webhookcfg.Webhook) (string, error) {
		return "whsec_" + client + "/" + entity, nil
	}
	hooktest.Apply(t, f.store, hooktest.Set(acme, "e1", 2))
	return f, q, tests
}

// hosted uses the host's own session, a cookie that names the person.
func (f *fixture) hosted() *fixture {
	f.portal.SignIn, f.portal.SignInURL = nil, "https://login.example.com/?from=portal"
	f.portal.Client = func(r *http.Request) (client, actor string, err error) {
		c, err := r.Cookie("session")
		if err != nil {
			return "", "", nil
		}
		if c.Value == "broken" {
			return acme, "ann", errors.New("broken on purpose")
		}
		return acme, c.Value, nil
	}
	return f
}

func (f *fixture) new(t *testing.T) http.Handler {
	t.Helper()
	h, err := portal.New(hooktest.NewHandler(t, f.store, f.verifier, &f.handler), &f.portal)
	if err != nil {
		t.Fatal(err)
	}
	if f.around != nil {
		return f.around(h)
	}
	return h
}

// serve serves the portal at /my/portal and returns a person at it.
func (f *fixture) serve(t *testing.T) *person {
	t.Helper()
	return f.serveOn(t, nil)
}

// serveOn serves the portal on the network of a test, or on a socket if that's nil.
func (f *fixture) serveOn(t *testing.T, network *hooktest.Network) *person {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/my/portal", f.new(t))
	server := httptest.NewUnstartedServer(mux)
	if network != nil {
		_ = server.Listener.Close()
		server.Listener = network
	}
	server.StartTLS()
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	client.Jar = jar
	if network != nil {
		client.Transport.(*http.Transport).DialContext = network.Dial
	}
	return &person{t, client, server.URL + "/my/portal"}
}

// person is somebody with a browser. Its methods take a page as "entity?id=e1".
type person struct {
	t      *testing.T
	client *http.Client
	base   string
}

// shown is a page that a browser shows.
type shown struct {
	status int
	at     string // as the methods of person take it
	header http.Header
	text   string
}

func (p *person) do(r *http.Request) shown {
	p.t.Helper()
	resp, err := p.client.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return shown{resp.StatusCode, pageOf(strings.TrimPrefix(resp.Request.URL.String(), p.base)), resp.Header, string(body)}
}

// addressOf returns the address of a page.
func addressOf(page string) string {
	page, query, _ := strings.Cut(page, "?")
	switch {
	case page == "" && query == "":
		return ""
	case page == "":
		return "?" + query
	case query == "":
		return "?page=" + page
	}
	return "?page=" + page + "&" + query
}

// pageOf returns the page at an address.
func pageOf(address string) string {
	page, ok := strings.CutPrefix(address, "?page=")
	if !ok {
		return address
	}
	return strings.Replace(page, "&", "?", 1)
}

// routes are all pages of a portal. Tests that are about every page, form or field take them
// from here.
var routes = portal.Routes()

// The forms of the pages have these paths. The other two are the sign-in and the sign-out.
var formPaths = pathsWith(func(r portal.Route) bool { return r.HasForm && !r.IsPublic })

// pagePaths are the paths of the pages for which somebody has to be signed in.
var pagePaths = pathsWith(func(r portal.Route) bool { return !r.IsPublic })

// allFields are the fields of all addresses and forms.
var allFields = func() (all []string) {
	for _, r := range routes {
		all = append(all, slices.Concat(r.Query, r.Form)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}()

func pathsWith(is func(portal.Route) bool) (paths []string) {
	for path, r := range routes {
		if is(r) {
			paths = append(paths, path)
		}
	}
	slices.Sort(paths)
	return paths
}

// values has a text for every field of the pages.
var values = map[string]string{
	"after": "a", "again": "1", "client": acme, "confirm": "all", "find": "e", "id": "e1", "lang": "php", "message": "msg_01", "since": "hour", "show": "1", "state": "waiting", "url": otherURL,
}

// filledIn fills in fields. It fails if one is new.
func filledIn(t *testing.T, fields []string) url.Values {
	t.Helper()
	filled := url.Values{}
	for _, field := range fields {
		if values[field] == "" {
			t.Fatalf("values has no text for the new field %s", field)
		}
		filled.Set(field, values[field])
	}
	return filled
}

// formFields returns the fields of the form of a page that was sent to a path.
func formFields(path string) []string {
	if path == "sign-in" {
		return portal.Credentials()
	}
	return slices.DeleteFunc(slices.Clone(routes[path].Form), func(field string) bool { return field == "again" })
}

// fieldsOf returns those of the fields that the form for a path has.
func fieldsOf(path string, fields ...string) (own []string) {
	for pair := range slices.Chunk(fields, 2) {
		if slices.Contains(formFields(path), pair[0]) {
			own = append(own, pair...)
		}
	}
	return own
}

func (p *person) request(method, path string, fields ...string) *http.Request {
	p.t.Helper()
	form := url.Values{}
	if slices.Contains(formFields(path), "client") || slices.Contains(fields, "again") {
		form.Set("client", acme) // as in the forms of the pages
	}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	var body io.Reader
	if method == "POST" {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequest(method, p.base+addressOf(path), body)
	if err != nil {
		p.t.Fatal(err)
	}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return r
}

func (p *person) get(path string) shown {
	p.t.Helper()
	return p.do(p.request("GET", path))
}

func (p *person) post(path string, fields ...string) shown {
	p.t.Helper()
	return p.do(p.request("POST", path, fields...))
}

// signIn signs in on the page that asks for it.
func (p *person) signIn() shown {
	p.t.Helper()
	p.get("overview")
	return p.post("sign-in", "username", acme, "password", secret, "then", "overview")
}

// hidden returns the fields that a page with one form sends besides those that a person fills
// in.
func (s shown) hidden() (fields url.Values) {
	fields = url.Values{}
	for _, field := range hiddenField.FindAllStringSubmatch(s.text, -1) {
		fields.Add(field[1], html.UnescapeString(field[2]))
	}
	return fields
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// signInAt signs in on a page that asks for it.
func (p *person) signInAt(page shown, password string) shown {
	p.t.Helper()
	form := page.hidden()
	form.Set("username", acme)
	form.Set("password", password)
	return p.postRaw("sign-in", form.Encode())
}

// setCookie replaces a cookie of the browser.
func (p *person) setCookie(name, value string) {
	p.t.Helper()
	at, err := url.Parse(p.base)
	if err != nil {
		p.t.Fatal(err)
	}
	p.client.Jar.SetCookies(at, []*http.Cookie{{Name: name, Value: value, Path: "/", Secure: true}})
}

// cookie returns a cookie of the browser; "" if it has none.
func (p *person) cookie(name string) string {
	at, err := url.Parse(p.base)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, c := range p.client.Jar.Cookies(at) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

// isSignIn reports whether the page asks for an id and a secret.
func (s shown) isSignIn() bool {
	return strings.Contains(s.text, `name="password"`) && !strings.Contains(s.text, "Signed in as")
}

// expect fails unless the page has the status, all of the texts, and none of those that start
// with an exclamation mark.
func (s shown) expect(t *testing.T, status int, texts ...string) {
	t.Helper()
	if s.status != status {
		t.Errorf("%s: got %d, want %d", s.at, s.status, status)
	}
	for _, text := range texts {
		unwanted, isUnwanted := strings.CutPrefix(text, "!")
		if isUnwanted == strings.Contains(s.text, unwanted) {
			t.Errorf("%s: want %s in\n%s", s.at, text, s.text)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

var (
	anyTag   = regexp.MustCompile(`<[^>]*>`)
	anySpace = regexp.MustCompile(`\s+`)
)

// plain returns the text that a person reads.
func (s shown) plain() string {
	return anySpace.ReplaceAllString(anyTag.ReplaceAllString(s.text, " "), " ")
}

// resolved returns the webhook in effect.
func (f *fixture) resolved(t *testing.T, entity string) string {
	t.Helper()
	hook, err := f.store.Resolve(context.Background(), acme, entity)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(hook.Source.String()+" "+hook.URL.Reveal(), " ")
}

// pair is a verifier for two clients, whose secret is the same.
type pair struct{}

func (pair) Verify(_ context.Context, id, password string) (webhookcfg.Client, error) {
	if (id != "anna" && id != "bert") || password != secret {
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	}
	return webhookcfg.Client{ID: "client-of-" + id}, nil
}
