package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
)

const (
	clientID     = "acme"
	clientSecret = "correct-horse-battery-staple"
)

func handlerPairs() []pair {
	post := `{"endpoint_id":"5b7ad2c8-6a3e-4c43-9c41-1f6c7b1f5a10","webhook_url":"https://hooks.example.com/services/T00000000/B00000000/XXXXXXXXXXXX"}`
	requests := []struct{ name, method, path, body string }{
		{"POST, one entity", "POST", referencePath, post},
		{"DELETE, one entity", "DELETE", referencePath + "/5b7ad2c8-6a3e-4c43-9c41-1f6c7b1f5a10", ""},
		{"DELETE, all", "DELETE", referencePath, ""},
	}
	var pairs []pair
	for _, r := range requests {
		pairs = append(pairs, pair{
			name:      r.name,
			ours:      benchmark(func(b *testing.B) { serve(b, ourHandler(b), r.method, r.path, r.body) }),
			reference: benchmark(func(b *testing.B) { serve(b, newReference(clientID, clientSecret), r.method, r.path, r.body) }),
			budget:    1.1,
		})
	}
	return pairs
}

func ourHandler(b *testing.B) http.Handler {
	h, err := newHandler(store.NewMemory())
	if err != nil {
		b.Fatal(err)
	}
	return h
}

func newHandler(st webhookcfg.Store) (http.Handler, error) {
	verifier, err := auth.Static(auth.Credential{ID: clientID, Secrets: []string{clientSecret}})
	if err != nil {
		return nil, err
	}
	return webhookcfg.NewHandler(st, verifier, &webhookcfg.Options{ProbeMode: webhookcfg.ProbeOff})
}

// serve measures the handler alone, for a client that has a base. The request and
// the response are made once and wound back, as cheaply for one side as for the
// other.
func serve(b *testing.B, h http.Handler, method, path, body string) {
	w := &response{header: make(http.Header)}
	first := newRequest("POST", referencePath, setAll)
	first.Body = requestBody{strings.NewReader(setAll)}
	h.ServeHTTP(w, first)
	r := newRequest(method, path, body)
	b.ReportAllocs()
	for b.Loop() {
		r.Body = requestBody{strings.NewReader(body)}
		clear(w.header)
		h.ServeHTTP(w, r)
	}
	if w.status != http.StatusOK {
		b.Fatalf("status %d", w.status)
	}
}

const setAll = `{"webhook_url":"https://hooks.example.com/all"}`

func newRequest(method, path, body string) *http.Request {
	r := httptest.NewRequest(method, path, nil)
	r.Header.Set("Content-Type", "application/json")
	r.SetBasicAuth(clientID, clientSecret)
	r.ContentLength = int64(len(body))
	return r
}

// requestBody is a body that need not be closed.
type requestBody struct{ *strings.Reader }

func (requestBody) Close() error { return nil }

// response is a [http.ResponseWriter] that costs nothing.
type response struct {
	header http.Header
	status int
}

func (w *response) Header() http.Header             { return w.header }
func (w *response) WriteHeader(status int)          { w.status = status }
func (w *response) Write(p []byte) (int, error)     { return len(p), nil }
func (w *response) SetReadDeadline(time.Time) error { return nil }
