package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestQuickstart(t *testing.T) {
	configurations := store.NewMemory()
	change := webhookcfg.Set("acme", webhookcfg.All(), egress.NewURL("https://hooks.example.com/in?token=t0ken"))
	if err := configurations.Apply(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(service(configurations))
	defer server.Close()
	const path = "/api/v1/configure/configure-webhook"

	steps := []struct{ method, target, want string }{
		{"GET", "/notify/acme/e1", "would send to: https://hooks.example.com base <nil>\n"},
		{"DELETE", path + "/e1", `{"message":"successful"}`},
		{"GET", "/notify/acme/e1", "would send to:  off <nil>\n"},
		{"GET", "/notify/acme/e2", "would send to: https://hooks.example.com base <nil>\n"},
		{"DELETE", path + "/e2/..", `{"error":"not_found","error_description":"There is nothing at this path"}`},
		{"DELETE", path, `{"message":"successful"}`},
		{"GET", "/notify/acme/e2", "would send to:  none <nil>\n"},
	}
	for _, step := range steps {
		if got := do(t, step.method, server.URL+step.target); got != step.want {
			t.Errorf("%s %s: got %q, want %q", step.method, step.target, got, step.want)
		}
	}
}

func do(t *testing.T, method, url string) string {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(""))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("acme", "a-long-random-secret")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
