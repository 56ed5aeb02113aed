package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/delivertest"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestRepair: a test gets a stopped base going again, at most once in ten seconds, and the log
// has both changes.
func TestRepair(t *testing.T) {
	var log lines
	s := idle(t, []string{"-dev", "-store", newStore(t)})
	receiver := delivertest.NewReceiver(t, s.keys, deliver.Recipient{Client: "acme"})
	receiver.Fail(http.StatusGone)
	s.logger = newLogger(&log)
	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL()))
	change.Time = time.Now()
	if err := s.webhooks.Store().Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	send := func() deliver.Reason {
		return s.sender.Send(t.Context(), "acme", "e1", deliver.Message{ID: "m"}).Reason
	}
	if first, second := send(), send(); first != deliver.ReasonGone || second != deliver.ReasonStopped {
		t.Fatalf("before the test: %q, %q", first, second)
	}
	receiver.Recover()
	hook, err := s.webhooks.Store().Resolve(t.Context(), "acme", "e1")
	if err != nil {
		t.Fatal(err)
	}
	test := s.sender.Tester(testMessage)
	if reason, err := test(t.Context(), "acme", "", hook); reason != "" || err != nil {
		t.Errorf("test of the base: %q, %v", reason, err)
	}
	if reason := send(); reason != "" {
		t.Errorf("after the test: %q", reason)
	}
	_, err = test(t.Context(), "acme", "e1", hook)
	var soon interface{ RetryAfter() time.Duration }
	if !errors.As(err, &soon) || soon.RetryAfter() <= 0 || soon.RetryAfter() > 10*time.Second {
		t.Errorf("a second test: %v", err)
	}
	if _, err := test(t.Context(), "nobody", "e1", webhookcfg.Webhook{}); err == nil {
		t.Error("tested nothing")
	}
	if text := log.String(); strings.Count(text, "after=stopped") != 1 || strings.Count(text, "after=ok") != 1 {
		t.Errorf("log: %s", text)
	}
}

// TestRepairFails: if a test fails, the client sees a word that says why.
func TestRepairFails(t *testing.T) {
	s := idle(t, []string{"-dev", "-store", newStore(t)})
	receiver := delivertest.NewReceiver(t, s.keys, deliver.Recipient{Client: "acme"})
	receiver.Fail(http.StatusTeapot)
	if err := s.webhooks.Store().Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL()))); err != nil {
		t.Fatal(err)
	}
	if reason, err := s.sender.Tester(testMessage)(t.Context(), "acme", "e1", webhookcfg.Webhook{URL: egress.NewURL(receiver.URL())}); reason != "status" || err != nil {
		t.Errorf("%q, %v", reason, err)
	}
}

// TestPage: people sign in with the client's id and secret, and then see its webhooks and its
// key in every process.
func TestPage(t *testing.T) {
	store := newStore(t)
	one, _ := start(t, "-store", store)
	two, _ := start(t, "-store", store)
	cookies := make(map[string]*http.Cookie)
	do := func(method, target string, form url.Values) (page string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for _, cookie := range cookies {
			r.AddCookie(cookie)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, cookie := range resp.Cookies() {
			cookies[cookie.Name] = cookie
		}
		return string(text)
	}
	if page := do(http.MethodGet, one+"/portal/?page=overview", nil); !strings.Contains(page, `type="password"`) {
		t.Errorf("signed out: %s", page)
	}
	id, secret, _ := strings.Cut(client, ":")
	for _, step := range []struct {
		secret string
		want   bool
	}{{"wrong", false}, {secret, true}} {
		do(http.MethodPost, one+"/portal/?page=sign-in", url.Values{"username": {id}, "password": {step.secret}, "then": {"overview"}})
		for _, process := range []string{one, two} {
			if page := do(http.MethodGet, process+"/portal/?page=key", nil); strings.Contains(page, "whsec_") != step.want {
				t.Errorf("signed in with %s: %s", step.secret, page)
			}
		}
	}
}

// TestGuessesBehindProxy: behind a proxy that the service knows, somebody who guesses secrets, in
// the page or elsewhere, doesn't lock out the client. If the service doesn't know it, the log says
// what to do.
func TestGuessesBehindProxy(t *testing.T) {
	const ours, strangers = "198.51.100.7", "203.0.113."
	for _, tt := range []struct {
		args         []string
		want, warned int
	}{
		{nil, http.StatusTooManyRequests, 1},
		{[]string{"-trusted-proxy", "127.0.0.0/8"}, http.StatusOK, 0},
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
		read := func(from, secret string) int {
			r := httptest.NewRequest(http.MethodGet, webhooks, nil)
			r.SetBasicAuth("acme", secret)
			return do(from, r)
		}
		for n := range 30 {
			do(fmt.Sprint(strangers, n), signIn("acme", "a-guess"))
			read(fmt.Sprint(strangers, n), "a-guess")
		}
		_, secret, _ := strings.Cut(client, ":")
		if got := read(ours, secret); got != tt.want {
			t.Errorf("%q: the client got %d, want %d", tt.args, got, tt.want)
		}
		if got := strings.Count(log.String(), "X-Forwarded-For"); got != tt.warned {
			t.Errorf("%q: %d warnings, want %d", tt.args, got, tt.warned)
		}
	}
}

// signIn returns the request of somebody who signs in on the page.
func signIn(id, secret string) *http.Request {
	form := url.Values{"username": {id}, "password": {secret}, "then": {"overview"}}
	r := httptest.NewRequest(http.MethodPost, "/portal/?page=sign-in", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

// TestSecretInWrongField: the secret isn't in the log if somebody types it into the field for the id.
func TestSecretInWrongField(t *testing.T) {
	var log bytes.Buffer
	s := idle(t, []string{"-store", newStore(t)})
	s.logger = newLogger(&log)
	h, err := s.handler()
	if err != nil {
		t.Fatal(err)
	}
	_, secret, _ := strings.Cut(client, ":")
	h.ServeHTTP(httptest.NewRecorder(), signIn(secret, "another one"))
	if text := log.String(); !strings.Contains(text, "sign_in") || strings.Contains(text, secret) {
		t.Errorf("log: %s", text)
	}
}
