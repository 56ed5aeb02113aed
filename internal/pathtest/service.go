// Package pathtest has what tests of mounts share: a table of request targets, and a handler
// that records what each client changed.
package pathtest

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/mounttest"
)

const secret = "a-long-random-secret" // of every client

// Authorization returns the header field that signs in a client. Any name works.
func Authorization(client string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(client+":"+secret))
}

// verifier signs in every client that knows the secret.
type verifier struct{}

// Verify implements [webhookcfg.CredentialVerifier].
func (verifier) Verify(_ context.Context, id, given string) (webhookcfg.Client, error) {
	if given != secret {
		return webhookcfg.Client{}, webhookcfg.ErrInvalidCredentials
	}
	return webhookcfg.Client{ID: id}, nil
}

// Scopes are the modes that a test should run a handler in.
var Scopes = []webhookcfg.AllScope{webhookcfg.AllScopeAsSpecified, webhookcfg.AllScopeExact, webhookcfg.AllScopeRefused}

// Service is a handler that records its requests and the changes that they make. You can call
// its methods concurrently.
type Service struct {
	options webhookcfg.Options
	store   *store.Memory

	mu       sync.Mutex
	handler  *webhookcfg.Handler
	received []string
	source   string              // the X-Forwarded-For fields of the last request
	host     string              // its Host
	changes  map[string][]string // by client
}

// New returns a service with the given options, but with reads and without a probe.
func New(t testing.TB, o webhookcfg.Options) *Service {
	t.Helper()
	o.Reads, o.ProbeMode, o.Timeout = true, webhookcfg.ProbeOff, time.Minute
	s := &Service{options: o, store: store.NewMemory(), changes: make(map[string][]string)}
	s.Limit(t, o.AllScope)
	return s
}

// Limit makes the service use another AllScope from now on.
func (s *Service) Limit(t testing.TB, scope webhookcfg.AllScope) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.options.AllScope = scope
	h, err := webhookcfg.NewHandler(recorder{s.store, s}, verifier{}, &s.options)
	if err != nil {
		t.Fatal(err)
	}
	s.handler = h
}

// Handler returns the service's present handler, so that you can mount that instead of the
// service.
func (s *Service) Handler() *webhookcfg.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.handler
}

// ServeHTTP records a request and serves it.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.received = append(s.received, r.Method+" "+r.RequestURI)
	s.source, s.host = strings.Join(r.Header.Values("X-Forwarded-For"), ","), r.Host
	s.mu.Unlock()
	s.Handler().ServeHTTP(w, r)
}

// recorder is a store that records its changes.
type recorder struct {
	*store.Memory
	service *Service
}

// Apply implements [webhookcfg.Store].
func (r recorder) Apply(ctx context.Context, c webhookcfg.Change) error {
	verb := "unset "
	if !c.URL.IsZero() {
		verb = "set "
	}
	r.service.mu.Lock()
	r.service.changes[c.Client] = append(r.service.changes[c.Client], verb+c.Scope.String())
	r.service.mu.Unlock()
	return r.Memory.Apply(ctx, c)
}

// Received returns the request lines since you last called it.
func (s *Service) Received() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.received
	s.received = nil
	return taken
}

// ExpectForwarded makes a request to the proxy at a URL, and checks that the service gets its
// client's address, also behind another one that the client sent, and its Host. Without the
// first, all clients share one source, or choose it. Without the second, the portal can't tell
// that a form is its own.
func (s *Service) ExpectForwarded(t testing.TB, url string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/configure/configure-webhook", nil) // gets a 401
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Forwarded-For", "192.0.2.1")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasSuffix(s.source, "127.0.0.1") {
		t.Errorf("X-Forwarded-For %q, want the address of the client", s.source)
	}
	if s.host != resp.Request.URL.Host {
		t.Errorf("Host %q, want %q", s.host, resp.Request.URL.Host)
	}
}

// Changes returns a client's changes since you last asked for them, as "unset all, set entity
// e1".
func (s *Service) Changes(client string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := strings.Join(s.changes[client], ", ")
	delete(s.changes, client)
	return taken
}

// Check checks the mount at a URL with package mounttest. For http, config is nil.
func (s *Service) Check(t testing.TB, url string, config *tls.Config) mounttest.Report {
	t.Helper()
	report, err := mounttest.Check(t.Context(), mounttest.Target{
		BaseURL: url, ClientID: "mounttest", Secret: secret, WebhookURL: "https://hooks.example.com/in",
		Received: s.Received, TLSConfig: config, Timeout: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Delete sends a DELETE for the target byte for byte, over a new connection, because an HTTP
// client would clean the path. It returns the unset scope, "all" or "entity …". If there is
// none, it returns the status and the target of a redirect, or "closed" if the connection was
// closed without a response.
func (s *Service) Delete(t testing.TB, address, target string) (effect string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	const client = "delete"
	request := fmt.Sprintf("DELETE %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\nAuthorization: %s\r\n\r\n", target, Authorization(client))
	// If the request is malformed, the server may close the connection before it has read all
	// of it.
	_, _ = io.WriteString(conn, request)
	resp, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodDelete})
	changes := strings.TrimPrefix(s.Changes(client), "unset ")
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		t.Fatalf("no response to DELETE %s", target)
	case err != nil:
		return strings.TrimSpace("closed " + changes)
	}
	defer resp.Body.Close()
	if changes != "" && resp.StatusCode == http.StatusOK {
		return changes
	}
	return strings.TrimSpace(fmt.Sprint(resp.StatusCode, " ", resp.Header.Get("Location"), changes))
}

// Tolerance lists differences from Row.Direct that are fine behind a proxy.
type Tolerance struct {
	// Cleans accepts that a malformed target reaches one entity.
	Cleans bool
	// Refuses are well-formed targets that the proxy may refuse. Forgives are malformed ones
	// that may reach all entities, because they can't mean anything else.
	Refuses, Forgives []string
}

// ExpectEffects sends the whole table to a mount at an http URL, in each of the modes. If a
// target means all entities or one, it must have that effect. If it's malformed, it must not
// change anything, and must not be redirected.
func (s *Service) ExpectEffects(t testing.TB, url string, tolerance Tolerance, scopes ...webhookcfg.AllScope) {
	t.Helper()
	address, base, _ := strings.Cut(strings.TrimPrefix(url, "http://"), "/")
	for _, scope := range scopes {
		s.Limit(t, scope)
		for _, row := range Rows("/"+base, scope) {
			if got := s.Delete(t, address, row.Target); !tolerance.allows(row, got) {
				t.Errorf("AllScope %d: DELETE %s: got %s, want %s", scope, row.Target, got, row.Direct)
			}
		}
	}
}

func (o Tolerance) allows(row Row, effect string) bool {
	switch {
	case effect == row.Direct:
		return true
	case !isRefusal(row.Direct):
		return isRefusal(effect) && slices.Contains(o.Refuses, row.Target)
	default:
		return isRefusal(effect) || o.Cleans && strings.HasPrefix(effect, "entity ") || effect == "all" && slices.Contains(o.Forgives, row.Target)
	}
}

// isRefusal reports whether a request changed nothing and wasn't redirected, so the effect is
// just a status. It can be 200, because some servers respond with that to a "*".
func isRefusal(effect string) bool {
	_, err := strconv.Atoi(effect)
	return effect == "closed" || err == nil
}
