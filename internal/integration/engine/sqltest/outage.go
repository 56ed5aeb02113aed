package sqltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// outages tests temporary outages, from which the store recovers by itself.
func (e Engine) outages(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no server is frozen")
	}
	server := e.Dedicated(t)
	server.SkipIfExternal(t)
	t.Run("frozen", func(t *testing.T) { e.frozen(t, server) })
	t.Run("read-only", func(t *testing.T) { e.readOnly(t, server) })
	t.Run("handler", func(t *testing.T) { e.handler(t, server) })
}

// frozen checks that every call ends with its context while the server is frozen.
func (e Engine) frozen(t *testing.T, server *engine.Server) {
	st := e.fresh(t, server.DSN())
	c := anyChange("acme", 1)
	if err := st.Apply(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls(st) {
		if err := ends(t, call); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s, server frozen: %v", name, err)
		}
	}
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	for name, call := range calls(st) {
		if err := call(t.Context()); err != nil {
			t.Errorf("%s, server continued: %v", name, err)
		}
	}
}

// calls returns a call of each method of a store.
func calls(st *sqlstore.Store) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{
		"set all":   func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[1]) },
		"set":       func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[0]) },
		"unset":     func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[2]) },
		"unset all": func(ctx context.Context) error { return st.Apply(ctx, changesOf("acme")[3]) },
		"resolve":   func(ctx context.Context) error { _, err := st.Resolve(ctx, "acme", "e1"); return err },
		"list":      func(ctx context.Context) error { _, err := st.List(ctx, "acme", "", 10); return err },
		"versions":  func(ctx context.Context) error { _, err := st.Versions(ctx, []string{"acme"}); return err },
		"sweep":     func(ctx context.Context) error { _, err := st.Sweep(ctx, 10); return err },
		"migrate":   st.Migrate,
	}
	ended, end := context.WithCancel(context.Background())
	end() // the server may be frozen
	if _, err := st.Changes(ended, ""); !errors.Is(err, errors.ErrUnsupported) {
		all["changes"] = func(ctx context.Context) error { _, err := st.Changes(ctx, ""); return err }
	}
	return all
}

// callTimeout bounds how long a call may outlive its context, for calls that never end.
const callTimeout = 20 * time.Second

// ends makes a call with a short deadline, and fails the test if it does not end.
func ends(t *testing.T, call func(context.Context) error) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- call(ctx) }()
	select {
	case err := <-ended:
		return err
	case <-time.After(callTimeout):
		t.Fatal("a call long outlived its context")
		return nil
	}
}

// readOnly checks that changes are refused with a known outcome, as on a standby, and
// that reads succeed.
func (e Engine) readOnly(t *testing.T, server *engine.Server) {
	admin := e.Open(t, server.DSN())
	admin.SetMaxOpenConns(1)
	name := prefix(t, e.Open(t, server.DSN()))
	db := e.Open(t, e.AsUser(t, admin, server.DSN()))
	db.SetMaxIdleConns(-1) // the server decides when a connection starts
	st := e.store(t, db, name)
	migrate(t, st)
	if err := st.Apply(t.Context(), changesOf("acme")[0]); err != nil {
		t.Fatal(err)
	}
	before := list(t, st)
	e.ReadOnly(t, admin, true)
	for i, c := range changesOf("acme") {
		if err := st.Apply(t.Context(), c); err == nil || errors.Is(err, sqlstore.ErrOutcomeUnknown) {
			t.Errorf("change %d on a read-only database: %v, want a refusal", i, err)
		}
	}
	if now := list(t, st); !reflect.DeepEqual(now, before) {
		t.Errorf("refused changes led from %+v to %+v", before, now)
	}
	e.ReadOnly(t, admin, false)
	if err := st.Apply(t.Context(), changesOf("acme")[3]); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	if now := list(t, st); len(now.Overrides) > 0 {
		t.Errorf("afterwards an unset of all left %+v", now)
	}
}

func list(t *testing.T, st *sqlstore.Store) webhookcfg.Page {
	t.Helper()
	page, err := st.List(t.Context(), "acme", "", 10)
	if err != nil {
		t.Fatal(err)
	}
	return page
}

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
	clients, err := auth.Static(auth.Credential{ID: "acme", Secrets: auth.Secrets(secret)})
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

// do makes a request and returns its response with the body.
func (s service) do(method, entity, body string) (*http.Response, string) {
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
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response, string(text)
}

// expect makes a request and fails the test if it has another status.
func (s service) expect(status int, method, entity, body string) string {
	s.t.Helper()
	response, text := s.do(method, entity, body)
	if response.StatusCode != status {
		s.t.Errorf("%s %q %s: %d %s, want %d", method, entity, body, response.StatusCode, text, status)
	}
	if retry := response.Header.Get("Retry-After"); status == http.StatusServiceUnavailable && retry == "" {
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

// handler tests the HTTP handler while its database is killed, frozen and restored.
func (e Engine) handler(t *testing.T, server *engine.Server) {
	s := newService(t, e.fresh(t, server.DSN()))
	s.expect(http.StatusOK, http.MethodPost, "", set("", "base"))
	s.expect(http.StatusOK, http.MethodPost, "", set("e1", "own"))
	before := s.expect(http.StatusOK, http.MethodGet, "", "")
	if !strings.Contains(before, "base.example.com") || !strings.Contains(before, "own.example.com") {
		t.Fatalf("the configuration is %s", before)
	}
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	s.expectUnavailable()
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if after := s.expect(http.StatusOK, http.MethodGet, "", ""); after != before {
		t.Errorf("while the database was down, the configuration %s became %s", before, after)
	}
	s.expect(http.StatusOK, http.MethodDelete, "e1", "")
	s.expectUnavailableWhileFrozen(server)
	s.expect(http.StatusOK, http.MethodPost, "", set("", "last"))
	if after := s.expect(http.StatusOK, http.MethodGet, "e1", ""); !strings.Contains(after, "last.example.com") {
		t.Errorf("finally e1 has %s", after)
	}
}

// expectUnavailable makes every kind of request while the store is unavailable.
func (s service) expectUnavailable() {
	s.t.Helper()
	const status = http.StatusServiceUnavailable
	s.expect(status, http.MethodPost, "", set("", "new"))
	s.expect(status, http.MethodPost, "", set("e1", "new"))
	s.expect(status, http.MethodDelete, "e1", "")
	s.expect(status, http.MethodDelete, "", "")
	s.expect(status, http.MethodGet, "e1", "")
	s.expect(status, http.MethodGet, "", "")
}

// expectUnavailableWhileFrozen checks that the handler responds while the database is
// silent.
func (s service) expectUnavailableWhileFrozen(server *engine.Server) {
	s.t.Helper()
	err := server.Freeze()
	if err == nil {
		s.expect(http.StatusServiceUnavailable, http.MethodPost, "", set("e1", "frozen"))
	}
	if err := errors.Join(err, server.Thaw()); err != nil {
		s.t.Fatal(err)
	}
}
