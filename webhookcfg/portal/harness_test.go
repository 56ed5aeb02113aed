package portal_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

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
}

func newFixture(t *testing.T) *fixture {
	return &fixture{
		store:    store.NewMemory(),
		verifier: hooktest.NewVerifier(t, acme, secret),
		handler:  webhookcfg.Options{ProbeMode: webhookcfg.ProbeOff},
		portal:   portal.Options{SignIn: &portal.SignIn{}},
	}
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
	return h
}

// serve serves the portal below /my/portal/ and returns a person at it.
func (f *fixture) serve(t *testing.T) *person {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/my/portal/", http.StripPrefix("/my/portal", f.new(t)))
	server := httptest.NewTLSServer(mux)
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := server.Client()
	client.Jar = jar
	return &person{t, client, server.URL + "/my/portal/"}
}

// person is somebody with a browser.
type person struct {
	t      *testing.T
	client *http.Client
	base   string
}

// shown is a page that a browser shows.
type shown struct {
	status int
	at     string // the path and query, relative to the portal
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
	return shown{resp.StatusCode, strings.TrimPrefix(resp.Request.URL.String(), p.base), resp.Header, string(body)}
}

// formFields are the fields of the forms, besides the client.
var formFields = map[string][]string{
	"set": {"id", "url"}, "unset": {"id"}, "all": {"url", "confirm"}, "unset-all": {"confirm"}, "test": {"id"},
	"try": {"id", "url"}, "try-all": {"url", "confirm"}, "send-again": {"message"}, "again": {"id", "since"}, "again-all": {"since"},
	"sign-in": {"username", "password", "then"},
}

// fieldsOf returns those of the fields that the form for a path has.
func fieldsOf(path string, fields ...string) (own []string) {
	for pair := range slices.Chunk(fields, 2) {
		if pair[0] == "client" || slices.Contains(formFields[path], pair[0]) {
			own = append(own, pair...)
		}
	}
	return own
}

func (p *person) request(method, path string, fields ...string) *http.Request {
	p.t.Helper()
	form := url.Values{}
	if path != "sign-out" {
		form.Set("client", acme) // as in the forms of the pages
	}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	var body io.Reader
	if method == "POST" {
		body = strings.NewReader(form.Encode())
	}
	r, err := http.NewRequest(method, p.base+path, body)
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
	p.get("")
	return p.post("sign-in", "username", acme, "password", secret, "then", "")
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
