package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

const secret = "a-long-random-secret"

func newHandler(t *testing.T) *webhookcfg.Handler {
	t.Helper()
	clients, err := auth.NewStatic(auth.Credential{ID: "mountcheck", Secrets: []auth.Secret{auth.NewSecret(secret)}})
	if err != nil {
		t.Fatal(err)
	}
	h, err := webhookcfg.NewHandler(store.NewMemory(), clients, &webhookcfg.Options{BasePath: "/hooks", Reads: true, ProbeMode: webhookcfg.ProbeOff})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// serve serves a mount over TLS and returns its URL and a file with its certificate.
func serve(t *testing.T, mount http.Handler) (url, roots string) {
	t.Helper()
	server := httptest.NewUnstartedServer(mount)
	// Resuming a session of TLS 1.2 takes no key exchange, and a check opens hundreds of
	// connections.
	server.TLS = &tls.Config{MaxVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	roots = filepath.Join(t.TempDir(), "roots.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(roots, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return server.URL + "/hooks", roots
}

// TestFailsAlthoughIncomplete: a failure counts, even if the check can't be completed after
// it.
func TestFailsAlthoughIncomplete(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	mux := http.NewServeMux()
	mux.Handle("/hooks/", newHandler(t))
	var redirects atomic.Int64
	url, roots := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r)
		if w.Header().Get("Location") != "" && redirects.Add(1) == 2 {
			cancel() // the first one is in the report
		}
	}))
	t.Setenv(secretEnv, secret)
	var stdout, stderr bytes.Buffer
	args := []string{"-url", url, "-roots", roots, "-client", "mountcheck", "-webhook", "https://hooks.example.com/t0ken"}
	if code := run(ctx, args, &stdout, &stderr); code != failed || !strings.Contains(stderr.String(), "canceled") {
		t.Errorf("exit code %d, want %d:\n%s%s", code, failed, &stdout, &stderr)
	}
}

func TestRun(t *testing.T) {
	h := newHandler(t)
	mux := http.NewServeMux()
	mux.Handle("/hooks/", h)
	good, goodRoots := serve(t, h.Before(mux))
	bad, badRoots := serve(t, mux)
	markedRoots := filepath.Join(t.TempDir(), "marked.pem")
	certificates, err := os.ReadFile(goodRoots)
	if err == nil {
		err = os.WriteFile(markedRoots, append([]byte("\ufeff"), bytes.Repeat(certificates, 2)...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name   string
		args   []string
		secret string
		code   int
		stdout []string
		stderr string
	}{
		{"passes", []string{"-url", good, "-roots", goodRoots}, secret, passed, []string{"0 of "}, ""},
		{"fails", []string{"-url", bad, "-roots", badRoots}, secret, failed, []string{"redirected (dots)", "To do: "}, ""},
		{"unknown certificate", []string{"-url", good}, secret, incomplete, nil, "certificate"},
		{"wrong secret", []string{"-url", good, "-roots", goodRoots}, "guess", incomplete, nil, "check ClientID and Secret"},
		{"no time", []string{"-url", good, "-roots", goodRoots, "-limit", "1ns"}, secret, incomplete, nil, "deadline exceeded"},
		{"unknown entity", []string{"-url", good, "-roots", goodRoots, "-entity", "a/b"}, secret, incomplete, nil, "identifiers"},
		{"no URL", nil, secret, wrongUsage, nil, "-url"},
		{"no secret", []string{"-url", good}, "", wrongUsage, nil, secretEnv},
		{"unexpected argument", []string{"-url", good, "x"}, secret, wrongUsage, nil, `"x"`},
		{"no roots", []string{"-url", good, "-roots", os.DevNull}, secret, wrongUsage, nil, "no certificate"},
		{"roots behind a byte order mark", []string{"-url", good, "-roots", markedRoots}, secret, wrongUsage, nil, "U+FEFF"},
		{"secret of a file with other line ends", []string{"-url", good, "-roots", goodRoots}, secret + "\r", wrongUsage, nil, "U+000D"},
		{"missing roots", []string{"-url", good, "-roots", goodRoots + "x"}, secret, wrongUsage, nil, "roots.pemx"},
		{"empty roots", []string{"-url", good, "-roots", ""}, secret, wrongUsage, nil, "-roots: it's empty"},
		{"empty entity", []string{"-url", good, "-entity", ""}, secret, wrongUsage, nil, "-entity: it's empty"},
		{"empty witness", []string{"-url", good, "-witness", ""}, secret, wrongUsage, nil, "-witness: it's empty"},
		{"help", []string{"-h"}, secret, wrongUsage, nil, "-client id"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(secretEnv, tt.secret)
			var stdout, stderr bytes.Buffer
			args := append([]string{"-client", "mountcheck", "-webhook", "https://hooks.example.com/t0ken"}, tt.args...)
			if code := run(t.Context(), args, &stdout, &stderr); code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			isMissing := func(text string) bool { return !strings.Contains(stdout.String(), text) }
			if slices.ContainsFunc(tt.stdout, isMissing) || !strings.Contains(stderr.String(), tt.stderr) || tt.stderr == "" && stderr.Len() > 0 {
				t.Errorf("got\n%s%s, want %q, %q", &stdout, &stderr, tt.stdout, tt.stderr)
			}
			for _, hidden := range []string{secret, "t0ken"} {
				if strings.Contains(stdout.String()+stderr.String(), hidden) {
					t.Errorf("the output holds %q", hidden)
				}
			}
		})
	}
}
