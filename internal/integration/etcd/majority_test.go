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
	"example.com/go-webhookcfg/internal/integration/etcdcluster"
	"example.com/go-webhookcfg/store/etcdstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// majorityLost checks that without a majority every call fails in time, and that the store
// recovers by itself.
func majorityLost(t *testing.T, c *etcdcluster.Cluster) {
	o := &etcdstore.Options{Prefix: newPrefix(), BarrierTimeout: 200 * time.Millisecond}
	st, alone := open(t, c, o, nil), openOn(t, c.Client(t, 2), o)
	server := serve(t, st)
	reader := readFeed(t, st)
	post(t, server, http.StatusOK)
	thaw := freeze(t, c, 0, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := st.Apply(ctx, set("zeta", "e1", 1)); !errors.Is(err, etcdstore.ErrOutcomeUnknown) {
		t.Errorf("Apply: %v, want one that wraps ErrOutcomeUnknown", err)
	}
	if _, err := st.Resolve(ctx, "acme", "e1"); err == nil {
		t.Error("Resolve succeeded without a majority")
	}
	if _, err := st.List(ctx, "acme", "", 1); err == nil {
		t.Error("List succeeded without a majority")
	}
	rejected := rejectedWithoutLeader(t, alone, "zeta")
	if err := reader.poll(timeout(t)); err == nil {
		t.Error("Changes succeeded without a majority")
	}
	if wait := post(t, server, http.StatusServiceUnavailable).Get("Retry-After"); wait == "" {
		t.Error("a 503 without Retry-After")
	}
	thaw()
	if err := c.Await(timeout(t), 2); err != nil {
		t.Fatal(err)
	}
	post(t, server, http.StatusOK)
	expect(t, st, "acme", "e1", hookURL(1))
	expect(t, st, "zeta", rejected, "")
	reader.catchUp(t)
	if !reader.named["acme"] {
		t.Errorf("named %v", reader.named)
	}
}

// serve starts a handler that accepts any credentials as those of one client.
func serve(t *testing.T, st webhookcfg.Store) *httptest.Server {
	t.Helper()
	acme := auth.Func(func(context.Context, string, string) (webhookcfg.Client, error) {
		return webhookcfg.Client{ID: "acme"}, nil
	})
	h, err := webhookcfg.NewHandler(st, acme, &webhookcfg.Options{
		ProbeMode: webhookcfg.ProbeOff,
		Timeout:   5 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

// post sets the webhook of an entity and checks the status.
func post(t *testing.T, server *httptest.Server, status int) http.Header {
	t.Helper()
	body := `{"endpoint_id":"e1","webhook_url":"` + hookURL(1) + `"}`
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
	if response.StatusCode != status {
		t.Errorf("got %s, want %d", response.Status, status)
	}
	return response.Header
}
