package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestSession: a person who signed in sees the webhooks of the client, and nobody else does.
func TestSession(t *testing.T) {
	service, _ := start(t, "-store", newStore(t))
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	do := func(method, path, cookie string, form url.Values) (*http.Response, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, service+path, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Cookie", cookie)
		resp, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		page, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, string(page)
	}
	if resp, page := do("GET", "/portal/", "", nil); resp.StatusCode != http.StatusForbidden || !strings.Contains(page, `href="/sign-in"`) {
		t.Errorf("signed out: %d %s", resp.StatusCode, page)
	}
	if resp, page := do("POST", "/sign-in", "", url.Values{"person": {"ann"}, "password": {"wrong"}}); resp.Header.Get("Set-Cookie") != "" || resp.StatusCode != http.StatusForbidden || !strings.Contains(page, "password is wrong") {
		t.Errorf("a wrong password: %d %s", resp.StatusCode, page)
	}
	resp, _ := do("POST", "/sign-in", "", url.Values{"person": {"ann"}, "password": {"a-password-of-ann"}})
	cookie, _, _ := strings.Cut(resp.Header.Get("Set-Cookie"), ";")
	if resp, page := do("GET", "/portal/", cookie, nil); resp.StatusCode != http.StatusOK || !strings.Contains(page, "ann") || !strings.Contains(page, "our example") {
		t.Errorf("signed in: %d %s", resp.StatusCode, page)
	}
	if _, page := do("GET", "/portal/key", cookie, nil); !strings.Contains(page, "whsec_") {
		t.Errorf("the key: %s", page)
	}
	for _, forged := range []string{cookie + "0", strings.Replace(cookie, "ann", "bob", 1), sessionCookie + "=ann"} {
		if resp, _ := do("GET", "/portal/", forged, nil); resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", forged, resp.StatusCode)
		}
	}
	if resp, _ := do("POST", "/sign-in", cookie, url.Values{"out": {"1"}}); !strings.Contains(resp.Header.Get("Set-Cookie"), "Max-Age=0") {
		t.Error("the session goes on")
	}
}

// TestSignInThrottle: someone who guesses has to wait, and the password isn't checked any
// more.
func TestSignInThrottle(t *testing.T) {
	passwords, err := auth.NewStatic(auth.Credential{ID: "ann", Secrets: []auth.Secret{auth.NewSecret("a-password-of-ann")}})
	if err != nil {
		t.Fatal(err)
	}
	throttle, err := auth.NewThrottle(passwords, &auth.ThrottleOptions{PerClientAndSource: auth.Rate{Burst: 1, Every: time.Hour}})
	if err != nil {
		t.Fatal(err)
	}
	people := &sessions{person: "ann", client: "acme", passwords: throttle, key: []byte(master)}
	signIn := func(password string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/sign-in", strings.NewReader(url.Values{"person": {"ann"}, "password": {password}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		people.ServeHTTP(w, r.WithContext(webhookcfg.ContextWithSource(r.Context(), netip.MustParseAddr("192.0.2.1"))))
		return w
	}
	signIn("wrong")
	if got := signIn("a-password-of-ann"); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") == "" || got.Header().Get("Set-Cookie") != "" {
		t.Errorf("after a guess: %d %v", got.Code, got.Header())
	}
}

// TestSessionEnds: a session ends after its time.
func TestSessionEnds(t *testing.T) {
	s := &sessions{person: "ann", client: "acme", key: []byte(master)}
	for at, want := range map[time.Time]string{time.Now(): "acme", time.Now().Add(-sessionTime): ""} {
		r := httptest.NewRequest("GET", "/", nil)
		r.AddCookie(s.open(at))
		if client, _, err := s.find(r); client != want || err != nil {
			t.Errorf("got %q, %v, want %q", client, err, want)
		}
	}
}

// TestPersonWithoutPassword: nobody gets in without a password.
func TestPersonWithoutPassword(t *testing.T) {
	for _, person := range []string{"acme", "acme:ann", "ann:a-password", "acme:ann:", "acme::a-password-of-ann", ":ann:a-password-of-ann", "acme:ann:short"} {
		s := &service{cfg: config{person: person}}
		if err := s.pages(http.NewServeMux(), nil); err == nil || !strings.Contains(err.Error(), "PERSON") {
			t.Errorf("%s: %v", person, err)
		}
	}
}

// TestGuessesBehindProxy: behind a proxy that the service knows, somebody who guesses passwords
// or secrets locks out neither the person nor the client. If the service doesn't know it, the log
// says what to do.
func TestGuessesBehindProxy(t *testing.T) {
	const ours, strangers = "198.51.100.7", "203.0.113."
	for _, tt := range []struct {
		args           []string
		person, client int // status of the right credentials, after a stranger's wrong ones
		warns          int
	}{
		{nil, http.StatusTooManyRequests, http.StatusTooManyRequests, 1},
		{[]string{"-trusted-proxy", "127.0.0.0/8"}, http.StatusSeeOther, http.StatusOK, 0},
	} {
		var log bytes.Buffer
		s := idle(t, append(tt.args, "-store", newStore(t)))
		s.logger = newLogger(&log)
		h, err := s.handler()
		if err != nil {
			t.Fatal(err)
		}
		do := func(from string, r *http.Request) int {
			r.RemoteAddr = "127.0.0.1:1234"
			r.Header.Set("X-Forwarded-For", from)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w.Code
		}
		signIn := func(from, password string) int {
			r := httptest.NewRequest("POST", "/sign-in", strings.NewReader(url.Values{"person": {"ann"}, "password": {password}}.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			return do(from, r)
		}
		read := func(from, secret string) int {
			r := httptest.NewRequest("GET", webhooks, nil)
			r.SetBasicAuth("acme", secret)
			return do(from, r)
		}
		for n := range 30 {
			signIn(fmt.Sprint(strangers, n), "a-guess")
			read(fmt.Sprint(strangers, n), "a-guess")
		}
		if got := signIn(ours, "a-password-of-ann"); got != tt.person {
			t.Errorf("%q: the person got %d, want %d", tt.args, got, tt.person)
		}
		_, secret, _ := strings.Cut(client, ":")
		if got := read(ours, secret); got != tt.client {
			t.Errorf("%q: the client got %d, want %d", tt.args, got, tt.client)
		}
		if got := strings.Count(log.String(), "X-Forwarded-For"); got != tt.warns {
			t.Errorf("%q: %d warnings, want %d", tt.args, got, tt.warns)
		}
	}
}
