package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store"
)

func TestQuickstart(t *testing.T) {
	server := httptest.NewServer(newService(store.NewMemory()))
	defer server.Close()
	const path = "/api/v1/configure/configure-webhook"

	steps := []struct{ method, target, body, want string }{
		{"POST", path, `{"webhook_url":"https://hooks.example.com/in?token=t0ken"}`, `{"message":"successful"}`},
		{"GET", "/notify/acme/e1", "", "source=base url=https://hooks.example.com\n"},
		{"DELETE", path + "/e1", "", `{"message":"successful"}`},
		{"GET", "/notify/acme/e1", "", "source=off url=\n"},
		{"GET", "/notify/acme/e2", "", "source=base url=https://hooks.example.com\n"},
		{"DELETE", path + "/e2/..", "", `{"error":"not_found","error_description":"There is nothing at this path"}`},
		{"DELETE", path, "", `{"message":"successful"}`},
		{"GET", "/notify/acme/e2", "", "source=none url=\n"},
	}
	for _, step := range steps {
		if got := do(t, step.method, server.URL+step.target, step.body); got != step.want {
			t.Errorf("%s %s: got %q, want %q", step.method, step.target, got, step.want)
		}
	}
}

func do(t *testing.T, method, url, body string) string {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth("acme", "a-long-random-secret")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
