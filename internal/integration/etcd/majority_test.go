package etcd_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// majorityLost checks that without a majority every call fails in time, and that the store
// recovers by itself.
func majorityLost(t *testing.T, c *etcdcluster.Cluster) {
	o := newOptions()
	st, alone := open(t, c, o), openOn(t, c.Client(t, 2), o)
	server := serve(t, st)
	reader := readFeedHastily(t, st)
	awaitSet(t, server)
	thaw := freeze(t, c, 0, 1)
	for name, call := range map[string]func(context.Context) error{
		"Healthy": alone.Healthy,
		"Resolve": func(ctx context.Context) error { _, err := st.Resolve(ctx, "acme", "e1"); return err },
		"List":    func(ctx context.Context) error { _, err := st.List(ctx, "acme", "", 1); return err },
		"Apply": func(ctx context.Context) error {
			err := st.Apply(ctx, hooktest.Set("zeta", "e1", 1))
			if !errors.Is(err, etcdstore.ErrOutcomeUnknown) {
				t.Errorf("Apply: %v, want one that wraps ErrOutcomeUnknown", err)
			}
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := call(ctx); err == nil {
			t.Errorf("%s succeeded without a majority", name)
		}
		cancel()
	}
	rejected := rejectedWithoutLeader(t, alone, "zeta")
	if err := reader.poll(timeout(t)); err == nil {
		t.Error("Changes succeeded without a majority")
	}
	if response := post(t, server); response.StatusCode != http.StatusServiceUnavailable || response.Header.Get("Retry-After") == "" {
		t.Errorf("got %s with the header %v, want 503 with Retry-After", response.Status, response.Header)
	}
	thaw()
	if err := c.Await(timeout(t), 2); err != nil {
		t.Fatal(err)
	}
	awaitSet(t, server)
	awaitHealth(t, st, nil)
	awaitHealth(t, alone, nil)
	expect(t, st, "acme", "e1", hooktest.URL(1).Reveal())
	expect(t, st, "zeta", rejected, "")
	reader.catchUp(t)
	if !reader.named["acme"] {
		t.Errorf("named %v", reader.named)
	}
}

// serve starts a handler that accepts any credentials, always for the same client.
func serve(t *testing.T, st webhookcfg.Store) *httptest.Server {
	t.Helper()
	acme := auth.Func(func(context.Context, string, string) (webhookcfg.Client, error) {
		return webhookcfg.Client{ID: "acme"}, nil
	})
	return hooktest.Serve(t, hooktest.NewHandler(t, st, acme, &webhookcfg.Options{
		ProbeMode: webhookcfg.ProbeOff,
		Timeout:   2 * time.Second,
	}))
}

// awaitSet sets the webhook of an entity until that succeeds.
func awaitSet(t *testing.T, server *httptest.Server) {
	t.Helper()
	for ctx := timeout(t); ; {
		response := post(t, server)
		if response.StatusCode == http.StatusOK {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("got %s", response.Status)
		}
	}
}

// post sets the webhook of an entity.
func post(t *testing.T, server *httptest.Server) *http.Response {
	t.Helper()
	body := `{"endpoint_id":"e1","webhook_url":"` + hooktest.URL(1).Reveal() + `"}`
	request, err := http.NewRequestWithContext(timeout(t), http.MethodPost,
		server.URL+"/api/v1/configure/configure-webhook", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	request.SetBasicAuth("acme", "secret")
	response, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	return response
}
