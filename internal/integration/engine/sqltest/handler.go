package sqltest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/webhookcfg"
)

const (
	secret = "a-long-random-secret"
	path   = "/api/v1/configure/configure-webhook"
)

// service is the handler on loopback.
type service struct {
	t   *testing.T
	url string
}

func newService(t *testing.T, st webhookcfg.Store) service {
	t.Helper()
	clients, err := auth.Static(auth.Credential{ID: "acme", Secrets: []string{secret}})
	if err != nil {
		t.Fatal(err)
	}
	handler, err := webhookcfg.NewHandler(st, clients, &webhookcfg.Options{
		Reads: true, ProbeMode: webhookcfg.ProbeOff, Timeout: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return service{t, server.URL}
}

// ask makes a request and returns its answer with the body.
func (s service) ask(method, entity, body string) (*http.Response, string) {
	s.t.Helper()
	url := s.url + path
	if entity != "" {
		url += "/" + entity
	}
	r, err := http.NewRequestWithContext(s.t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	r.SetBasicAuth("acme", secret)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer, string(text)
}

// want makes a request and fails the test if its status is another.
func (s service) want(status int, method, entity, body string) string {
	s.t.Helper()
	answer, text := s.ask(method, entity, body)
	if answer.StatusCode != status {
		s.t.Errorf("%s %q %s: %d %s, want %d", method, entity, body, answer.StatusCode, text, status)
	}
	if retry := answer.Header.Get("Retry-After"); status == http.StatusServiceUnavailable && retry == "" {
		s.t.Errorf("%s %q: no Retry-After", method, entity)
	}
	return text
}

func set(entity, host string) string {
	if entity == "" {
		return fmt.Sprintf(`{"webhook_url":"https://%s.example.com/"}`, host)
	}
	return fmt.Sprintf(`{"endpoint_id":%q,"webhook_url":"https://%s.example.com/"}`, entity, host)
}

// handler serves while its database dies, hangs and returns.
func (e Engine) handler(t *testing.T, server *engine.Server) {
	s := newService(t, e.fresh(t, server.DSN()))
	s.want(http.StatusOK, http.MethodPost, "", set("", "base"))
	s.want(http.StatusOK, http.MethodPost, "", set("e1", "own"))
	before := s.want(http.StatusOK, http.MethodGet, "", "")
	if !strings.Contains(before, "base.example.com") || !strings.Contains(before, "own.example.com") {
		t.Fatalf("the configuration is %s", before)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	s.unavailable()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if after := s.want(http.StatusOK, http.MethodGet, "", ""); after != before {
		t.Errorf("while the database was down, %s became %s", before, after)
	}
	s.want(http.StatusOK, http.MethodDelete, "e1", "")
	s.whileFrozen(server)
	s.want(http.StatusOK, http.MethodPost, "", set("", "last"))
	if after := s.want(http.StatusOK, http.MethodGet, "e1", ""); !strings.Contains(after, "last.example.com") {
		t.Errorf("at last e1 has %s", after)
	}
}

// unavailable makes every kind of request, which the store cannot answer now.
func (s service) unavailable() {
	s.t.Helper()
	const status = http.StatusServiceUnavailable
	s.want(status, http.MethodPost, "", set("", "new"))
	s.want(status, http.MethodPost, "", set("e1", "new"))
	s.want(status, http.MethodDelete, "e1", "")
	s.want(status, http.MethodDelete, "", "")
	s.want(status, http.MethodGet, "e1", "")
	s.want(status, http.MethodGet, "", "")
}

// whileFrozen has the answer come though nothing comes of the database.
func (s service) whileFrozen(server *engine.Server) {
	s.t.Helper()
	err := server.Freeze()
	if err == nil {
		s.want(http.StatusServiceUnavailable, http.MethodPost, "", set("e1", "frozen"))
	}
	if err := errors.Join(err, server.Thaw()); err != nil {
		s.t.Fatal(err)
	}
}
