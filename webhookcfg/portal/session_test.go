package portal_test

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"errors"
	"fmt"
	"html"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

func textLogger(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }

const (
	cookieName   = "__Host-webhooks"
	noticeCookie = "__Host-webhooks-notice"
)

// sealedBy returns the cookie that a portal with other options gives.
func sealedBy(t *testing.T, options portal.SignIn) string {
	t.Helper()
	f := newFixture(t)
	f.portal.SignIn = &options
	p := f.serve(t)
	p.signIn()
	sealed := p.cookie(cookieName)
	if sealed == "" {
		t.Fatal("no cookie")
	}
	return sealed
}

// TestCookie: a cookie that this portal didn't give is the sign-in page, without a change.
func TestCookie(t *testing.T) {
	key := func(b byte) []byte { return []byte(strings.Repeat(string(rune(b)), 32)) }
	own := portal.SignIn{Keys: [][]byte{key('a'), key('b')}}
	good := sealedBy(t, own)
	if strings.Contains(good, secret) {
		t.Errorf("the cookie shows the secret: %s", good)
	}
	tests := map[string]struct {
		value string
		ok    bool
	}{
		"own":              {good, true},
		"of the old key":   {sealedBy(t, portal.SignIn{Keys: [][]byte{key('b')}}), true},
		"of another key":   {sealedBy(t, portal.SignIn{Keys: [][]byte{key('c')}}), false},
		"of a random key":  {sealedBy(t, portal.SignIn{}), false},
		"truncated":        {good[:len(good)-4], false},
		"short":            {good[:8], false},
		"changed":          {flip(good), false},
		"not base64":       {"%%%", false},
		"another spelling": {good + "=", false},
		"forged":           {"OTk5OTk5OTk5OTphY21lOmEtbG9uZy1yYW5kb20tc2VjcmV0", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.portal.SignIn = &own
			p := f.serve(t)
			p.setCookie(cookieName, tt.value)
			got := p.get("all")
			if got.isSignIn() == tt.ok {
				t.Fatalf("got %d %s", got.status, got.text)
			}
			if tt.ok {
				return
			}
			got.expect(t, http.StatusForbidden, "Your session has ended. Sign in again.", `name="then" value="all"`)
			p.post("set", "id", "e1", "url", hookURL)
			if got := f.resolved(t, "e1"); got != "none" {
				t.Errorf("changed: %s", got)
			}
		})
	}
}

// flip changes one bit in the middle.
func flip(value string) string {
	b := []byte(value)
	if b[len(b)/2] == 'A' {
		b[len(b)/2] = 'B'
	} else {
		b[len(b)/2] = 'A'
	}
	return string(b)
}

// TestAttributes: no script, no other site's form and no other host gets the cookie.
func TestAttributes(t *testing.T) {
	f := newFixture(t)
	h := f.new(t)
	r := httptest.NewRequest("POST", "/?page=sign-in", strings.NewReader("username=acme&password="+secret+"&then=all"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.AddCookie(&http.Cookie{Name: noticeCookie, Value: "asked"})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	cookie := w.Header().Get("Set-Cookie")
	_, attributes, _ := strings.Cut(cookie, "; ")
	if attributes != "Path=/; HttpOnly; Secure; SameSite=Lax" || !strings.HasPrefix(cookie, "__Host-webhooks=") {
		t.Errorf("got %s", cookie)
	}
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "?page=all" {
		t.Errorf("got %d to %s", w.Code, w.Header().Get("Location"))
	}
}

// TestExpiry: a session ends after eight hours.
func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newFixture(t).new(t)
		r := httptest.NewRequest("POST", "/?page=sign-in", strings.NewReader("username=acme&password="+secret+"&then=overview"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.AddCookie(&http.Cookie{Name: noticeCookie, Value: "asked"})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
		get := func() string {
			r := httptest.NewRequest("GET", "/?page=overview", nil)
			r.Header.Set("Cookie", cookie)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Body.String()
		}
		time.Sleep(8*time.Hour - 2*time.Second)
		if page := get(); !strings.Contains(page, "Signed in as") {
			t.Errorf("before: %s", page)
		}
		time.Sleep(2 * time.Second)
		if page := get(); !strings.Contains(page, "Your session has ended") {
			t.Errorf("after: %s", page)
		}
	})
}

// TestRotation: while the replicas change their keys one after another, whoever signs in at one is
// signed in at the others.
func TestRotation(t *testing.T) {
	old, next := []byte(strings.Repeat("o", 32)), []byte(strings.Repeat("n", 32))
	f := newFixture(t)
	replica := func(keys ...[]byte) http.Handler {
		f.portal.SignIn = &portal.SignIn{Keys: keys}
		return f.new(t)
	}
	steps := []http.Handler{replica(old), replica(old, next), replica(next, old)}
	for i := range steps[1:] {
		before, after := steps[i], steps[i+1]
		for _, at := range [][2]http.Handler{{before, after}, {after, before}} {
			p := f.serve(t)
			p.client.Transport = direct{at[0]}
			p.signIn().expect(t, http.StatusOK, "Signed in as")
			p.client.Transport = direct{at[1]}
			p.get("all").expect(t, http.StatusOK, "Signed in as")
		}
	}
	// If the new key is used too early, a replica without it can't know who it is. It doesn't
	// sign them out elsewhere.
	p := f.serve(t)
	p.client.Transport = direct{steps[2]}
	p.signIn().expect(t, http.StatusOK, "Signed in as")
	p.client.Transport = direct{steps[0]}
	p.get("all").expect(t, http.StatusForbidden, "Your session has ended")
	p.client.Transport = direct{steps[2]}
	p.get("all").expect(t, http.StatusOK, "Signed in as")
}

// revocable is a verifier whose answer changes.
type revocable struct {
	webhookcfg.CredentialVerifier
	err error
}

func (v *revocable) Verify(ctx context.Context, id, secret string) (webhookcfg.Client, error) {
	if v.err != nil {
		return webhookcfg.Client{}, v.err
	}
	return v.CredentialVerifier.Verify(ctx, id, secret)
}

// TestRevocation: if a secret is revoked between the form and its POST, the session ends. The
// sign-in keeps the fields that were typed, and doesn't make the change.
func TestRevocation(t *testing.T) {
	f := newFixture(t)
	v := &revocable{CredentialVerifier: f.verifier}
	f.verifier = v
	p := f.serve(t)
	p.signIn()
	v.err = webhookcfg.ErrInvalidCredentials
	got := p.post("set", "id", "e1", "url", hookURL)
	kept := html.EscapeString(hookURL)
	got.expect(t, http.StatusForbidden, "no longer valid", "comes back after you sign in", `name="then" value="set"`, `name="again" value="1"`, `name="id" value="e1"`, kept)
	if !got.isSignIn() || p.cookie(cookieName) != "" {
		t.Error("the session goes on")
	}
	fields := []string{"username", acme, "then", "set", "again", "1", "id", "e1", "url", hookURL}
	p.post("sign-in", append(fields, "password", secret)...).expect(t, http.StatusForbidden, "The ID or the secret is wrong", `name="again" value="1"`, kept)
	v.err = nil
	again := p.post("sign-in", append(fields, "password", secret)...)
	again.expect(t, http.StatusOK, "What you typed is still here", kept, `<h1 class="id" dir="auto">e1</h1>`)
	if got := f.resolved(t, "e1"); got != "none" {
		t.Errorf("the sign-in changed %s", got)
	}
	p.post("set", "id", "e1", "url", hookURL).expect(t, http.StatusOK, "The webhook is set.")
	// A verifier that is down, or asks to wait, doesn't end the session.
	locked := errors.Join(webhookcfg.ErrInvalidCredentials, waitError(3*time.Second))
	for err, status := range map[error]int{errBroken: 503, waitError(3 * time.Second): 429, locked: 429} {
		v.err = err
		down := p.post("all", "url", hookURL, "confirm", "all")
		down.expect(t, status, "Send it again", kept, `name="confirm" value="all"`, "!password")
		if p.cookie(cookieName) == "" {
			t.Errorf("%v ended the session", err)
		}
	}
	v.err = waitError(2500 * time.Millisecond)
	p.post("sign-in", "username", acme, "password", secret, "then", "overview").expect(t, 429, "Too many attempts", "Try again in 3 s.")
	v.err = nil
	p.get("").expect(t, http.StatusOK, "Signed in as")
}

// TestNoSession: a POST without a session changes nothing. It gets a page with the fields
// that were typed, and not a redirect.
func TestNoSession(t *testing.T) {
	for name, hosted := range map[string]bool{"sign-in": false, "host": true} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if hosted {
				f.hosted()
			}
			p := f.serve(t)
			want := []string{"not signed in", `name="id" value="e1"`, html.EscapeString(hookURL)}
			if hosted {
				want = append(want, `href="https://login.example.com/?from=portal"`, "Send it again", "!password")
			}
			p.post("set", "id", "e1", "url", hookURL).expect(t, http.StatusForbidden, want...)
			for _, path := range formPaths {
				sent := filledIn(t, formFields(path))
				got := p.postRaw(path, sent.Encode())
				got.expect(t, http.StatusForbidden, "not signed in")
				if button := regexp.MustCompile(`<p><strong>([^<]+)</strong></p><dl>`).FindString(got.text); hosted && button == "" {
					t.Errorf("%s: the page doesn't say what is sent again", path)
				}
				for field := range sent {
					if got := got.hidden().Get(field); got != sent.Get(field) {
						t.Errorf("%s: kept %q of %s", path, got, field)
					}
				}
			}
			if got := f.resolved(t, "e1"); got != "none" {
				t.Errorf("changed: %s", got)
			}
			if hosted {
				p.post("unset-all", "confirm", "all").expect(t, http.StatusForbidden, "Remove everything", "Send it again")
			}
		})
	}
}

// TestHostSession: the host says who is signed in. If its session fails, nobody is signed
// out.
func TestHostSession(t *testing.T) {
	f := newFixture(t).hosted()
	var records strings.Builder
	f.handler.Logger = textLogger(&records)
	var actor string
	f.handler.OnEvent = func(_ context.Context, e webhookcfg.Event) { actor = e.Actor }
	p := f.serve(t)
	p.get("").expect(t, http.StatusForbidden, "not signed in", "https://login.example.com/?from=portal", "!password")
	p.setCookie("session", "ann")
	p.post("set", "id", "e1", "url", hookURL).expect(t, http.StatusOK, "The webhook is set.", "ann", "!Sign out")
	if actor != "ann" {
		t.Errorf("the actor is %q", actor)
	}
	p.setCookie("session", "broken")
	p.post("set", "id", "e1", "url", otherURL).expect(t, http.StatusServiceUnavailable, "do this right now", otherURL)
	if !strings.Contains(records.String(), "portal: Options.Client failed") || !strings.Contains(records.String(), "on purpose") {
		t.Errorf("logged %s", &records)
	}
	p.post("sign-in", "username", acme, "password", secret, "then", "overview").expect(t, http.StatusNotFound, "no such page")
	if got := f.resolved(t, "e1"); got != "override "+hookURL {
		t.Errorf("changed: %s", got)
	}
}

// TestLostCookie: a browser that doesn't keep the cookie is told, instead of asked in a loop.
func TestLostCookie(t *testing.T) {
	p := newFixture(t).serve(t)
	p.client.Jar = nil
	p.signIn().expect(t, http.StatusForbidden, "didn&#39;t keep the session. Use https", "!Signed in as")
}

// anybody is a verifier that accepts all.
type anybody struct{}

func (anybody) Verify(_ context.Context, id, _ string) (webhookcfg.Client, error) {
	return webhookcfg.Client{ID: id[:4]}, nil
}

// TestLongCredentials: if browsers would drop the cookie, the page says so.
func TestLongCredentials(t *testing.T) {
	f := newFixture(t)
	long := strings.Repeat("s", 1000)
	for name, tt := range map[string]struct {
		id   string
		want string
	}{"fits": {acme, "Signed in as"}, "too long": {strings.Repeat("i", 2000), "too long to sign in with here"}} {
		f.verifier = anybody{}
		p := f.serve(t)
		p.get("")
		if got := p.post("sign-in", "username", tt.id, "password", long, "then", "overview"); !strings.Contains(got.text, tt.want) {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
}

// TestLongCookie: a cookie that is longer than any that the portal gives isn't even opened.
func TestLongCookie(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t)
	f.verifier, f.portal.SignIn.Keys = anybody{}, [][]byte{key}
	p := f.serve(t)
	for size, want := range map[int]string{1000: "Signed in as", 3000: "Your session has ended"} {
		text := fmt.Sprint(time.Now().Add(time.Hour).Unix(), ":acme:", strings.Repeat("s", size))
		p.setCookie(cookieName, base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, []byte(text), []byte(cookieName))))
		if got := p.get(""); !strings.Contains(got.text, want) {
			t.Errorf("%d bytes: %d %s", size, got.status, got.text)
		}
	}
}

// TestThrottle: sign-ins count for the limits of the verifier, by the address of the connection.
func TestThrottle(t *testing.T) {
	f := newFixture(t)
	throttle, err := auth.NewThrottle(f.verifier, &auth.ThrottleOptions{PerClientAndSource: auth.Rate{Burst: 2, Every: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	f.verifier = throttle
	p := f.serve(t)
	for _, status := range []int{403, 403, 429} {
		if got := p.post("sign-in", "username", acme, "password", "wrong-secret-12345", "then", "overview"); got.status != status {
			t.Errorf("got %d, want %d", got.status, status)
		}
	}
}

// TestThen: a sign-in leads to a page of the portal, and nowhere else.
func TestThen(t *testing.T) {
	p := newFixture(t).serve(t)
	for _, then := range []string{"https://evil.example.com/", "//evil.example.com", "../x", "sign-out", "style"} {
		p.post("sign-in", "username", acme, "password", secret, "then", then).expect(t, http.StatusNotFound, "no such page")
	}
	p.get("entity?id=e%2B1&show=1").expect(t, http.StatusForbidden, `name="then" value="entity"`, `name="id" value="e&#43;1"`, `name="show" value="1"`)
	if got := p.post("sign-in", "username", acme, "password", secret, "then", "entity", "id", "e-1"); got.at != "entity?id=e-1" {
		t.Errorf("at %s", got.at)
	}
}

// TestSignInKeepsAddress: a sign-in leads to the address that the person asked for, with all of
// its fields. Without one of them, it could be the address of more than they meant.
func TestSignInKeepsAddress(t *testing.T) {
	f, _, _ := complete(t)
	p := f.serve(t)
	for _, path := range pagePaths {
		queries := []url.Values{nil, filledIn(t, routes[path].Query)}
		for _, field := range routes[path].Query {
			queries = append(queries, filledIn(t, []string{field}))
		}
		for _, query := range queries {
			at := path
			if len(query) > 0 {
				at += "?" + query.Encode()
			}
			p.post("sign-out")
			asks := p.get(at)
			if !asks.isSignIn() {
				t.Fatalf("%s: got %d %s", at, asks.status, asks.text)
			}
			refused := p.signInAt(asks, "wrong-secret-12345")
			refused.expect(t, http.StatusForbidden, "The ID or the secret is wrong")
			got := p.signInAt(refused, secret)
			want := p.get(at)
			if got.at != at || got.status != want.status || got.text != want.text || want.isSignIn() {
				t.Errorf("%s: the sign-in leads to %s (%d)\n%s\nwant (%d)\n%s", at, got.at, got.status, got.text, want.status, want.text)
			}
		}
	}
}

// TestSignInKeepsForm: a form that was sent without a session comes back after the sign-in,
// with all of its fields. The sign-in does nothing else.
func TestSignInKeepsForm(t *testing.T) {
	for _, path := range formPaths {
		f, q, tests := complete(t)
		p := f.serve(t)
		sent := filledIn(t, formFields(path))
		asks := p.postRaw(path, sent.Encode())
		asks.expect(t, http.StatusForbidden, "comes back after you sign in")
		refused := p.signInAt(asks, "wrong-secret-12345")
		refused.expect(t, http.StatusForbidden, "The ID or the secret is wrong")
		want := maps.Clone(sent)
		want.Set("then", path)
		want.Set("again", "1")
		for _, page := range []shown{asks, refused} {
			if got := page.hidden(); !maps.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%s: kept %v, want %v", path, got, want)
			}
		}
		again := p.signInAt(refused, secret)
		again.expect(t, http.StatusOK, "What you typed is still here")
		if sent.Has("url") {
			again.expect(t, http.StatusOK, `value="`+sent.Get("url")+`"`)
		}
		if tests.Load() > 0 || len(q.again) > 0 || f.resolved(t, "e1") != "override "+hooktest.URL(2).Reveal() || f.resolved(t, "e2") != "base "+hooktest.URL(1).Reveal() {
			t.Errorf("%s: the sign-in did something: %d tests, sent again: %q", path, tests.Load(), q.again)
		}
		p.postRaw(path, sent.Encode()).expect(t, http.StatusOK, `class="notice good"`)
	}
}

// TestSecretAsIdentifier: a form with the secret in the place of an identifier is refused whole.
// What is left of it could mean something else than its sender did, so nobody is asked to send it
// again.
func TestSecretAsIdentifier(t *testing.T) {
	for _, path := range formPaths {
		if !slices.Contains(formFields(path), "id") {
			continue
		}
		p := newFixture(t).serve(t)
		form := filledIn(t, formFields(path))
		form.Set("id", secret)
		refused := p.signInAt(p.postRaw(path, form.Encode()), secret)
		p.signIn()
		for _, page := range []shown{refused, p.postRaw(path, form.Encode())} {
			page.expect(t, http.StatusBadRequest, "that&#39;s your secret", "!"+secret, "!"+otherURL, "!Send it again", "!comes back after you sign in", `!name="again"`)
		}
	}
}

// TestSecretAsHost: logs show the host of a URL, so it's refused in the same way. In the path, where
// no log shows it, a secret is the client's own business.
func TestSecretAsHost(t *testing.T) {
	for _, path := range formPaths {
		if !slices.Contains(formFields(path), "url") {
			continue
		}
		f, _, _ := complete(t)
		records := f.record()
		p := f.serve(t)
		p.signIn()
		form := filledIn(t, formFields(path))
		form.Set("url", " https://"+secret+".example.com/in")
		p.postRaw(path, form.Encode()).expect(t, http.StatusBadRequest, "that&#39;s your secret", "!"+secret)
		records.expectWithout(t, path, secret)
		form.Set("url", address+"/"+secret)
		p.postRaw(path, form.Encode()).expect(t, http.StatusOK)
	}
}

// TestBasicSecretAsIdentifier: the same holds if the host's function reads the secret from the
// header.
func TestBasicSecretAsIdentifier(t *testing.T) {
	f := newFixture(t)
	f.hosted().portal.Client = func(r *http.Request) (client, actor string, err error) {
		id, _, _ := r.BasicAuth()
		return id, id, nil
	}
	h := f.new(t)
	r := httptest.NewRequest("POST", "/?page=set", strings.NewReader(url.Values{"client": {acme}, "id": {secret}, "url": {hookURL}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.SetBasicAuth(acme, secret)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusBadRequest || strings.Contains(w.Body.String(), secret) || strings.Contains(w.Header().Get("Location"), secret) {
		t.Errorf("%d, %q: %s", w.Code, w.Header().Get("Location"), w.Body)
	}
}

// TestSecretInAddress: an address with the secret in the place of an identifier leads to the
// overview. Without the identifier, the same page would be about another webhook.
func TestSecretInAddress(t *testing.T) {
	for _, path := range pagePaths {
		for _, field := range []string{"id", "message", "state"} {
			if !slices.Contains(routes[path].Query, field) {
				continue
			}
			f, _, _ := complete(t)
			p := f.serve(t)
			refused := p.signInAt(p.get(path+"?"+field+"="+secret), secret)
			refused.expect(t, http.StatusBadRequest, "that&#39;s your secret", "!"+secret)
			if got := p.signInAt(refused, secret); got.status != http.StatusOK || got.at != "overview" {
				t.Errorf("%s: signing in once more leads to %d at %q", path, got.status, got.at)
			}
		}
	}
}

// TestSessionBehindThrottle: with a cache around the throttle, a session goes on while somebody at
// the same address guesses secrets.
func TestSessionBehindThrottle(t *testing.T) {
	f := newFixture(t)
	throttled, err := auth.NewThrottle(f.verifier, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.verifier, err = auth.NewCache(throttled, nil); err != nil {
		t.Fatal(err)
	}
	source := netip.MustParseAddr("192.0.2.1")
	f.around = func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(auth.ContextWithSource(r.Context(), source)))
		})
	}
	p := f.serve(t)
	p.signIn()
	for i := range 200 {
		_, _ = f.verifier.Verify(auth.ContextWithSource(t.Context(), source), fmt.Sprint("guessed", i), "wrong-secret")
	}
	p.get("").expect(t, http.StatusOK, "Sign out")
	if _, err := throttled.Verify(auth.ContextWithSource(t.Context(), source), acme, "another-secret"); !errors.As(err, new(*auth.LimitError)) {
		t.Errorf("the address isn't limited: %v", err)
	}
}
