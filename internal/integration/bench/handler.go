package main

import (
	"net"
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

// requests compares the handler with a handwritten one that has the same checks, and with
// handlers on frameworks.
func requests(s settings, r *report) error {
	r.section("Requests", `The handler, called in process, with a store in memory. "net/http" is a handler with the
same checks, written by hand in one piece ([reference.go](reference.go)). The others are
handlers on a framework, and use its decoding and encoding ([frameworks.go](frameworks.go)).`)
	post := `{"endpoint_id":"5b7ad2c8-6a3e-4c43-9c41-1f6c7b1f5a10","webhook_url":"https://hooks.example.com/services/T00000000/B00000000/XXXXXXXXXXXX"}`
	all := append([]framework{{"net/http", func(h *reference) http.Handler { return h }}}, frameworks...)
	var pairs []pair
	for _, q := range []struct{ name, method, path, body string }{
		{"POST, one entity", "POST", referencePath, post},
		{"DELETE, one entity", "DELETE", referencePath + "/5b7ad2c8-6a3e-4c43-9c41-1f6c7b1f5a10", ""},
		{"DELETE, all", "DELETE", referencePath, ""},
	} {
		for i, f := range all {
			p := pair{
				name:      q.name + " ÷ " + f.name,
				ours:      benchmark(func(b *testing.B) { serve(b, newHandler(b), q.method, q.path, q.body) }),
				reference: benchmark(func(b *testing.B) { serve(b, f.new(newReference(clientID, clientSecret)), q.method, q.path, q.body) }),
				budget:    1,
			}
			if i == 0 {
				p.budget = 1.25
			}
			pairs = append(pairs, p)
		}
	}
	s.measurePairs(r, pairs...)
	return nil
}

func newHandler(b *testing.B) http.Handler {
	verifier, err := auth.NewStatic(auth.Credential{ID: clientID, Secrets: []auth.Secret{auth.NewSecret(clientSecret)}})
	if err != nil {
		b.Fatal(err)
	}
	h, err := webhookcfg.NewHandler(store.NewMemory(), verifier, &webhookcfg.Options{ProbeMode: webhookcfg.ProbeOff})
	if err != nil {
		b.Fatal(err)
	}
	return h
}

// serve measures a handler for a client that has a base. It makes the request and the
// response once and resets them, which costs the same for both sides.
func serve(b *testing.B, h http.Handler, method, path, body string) {
	w := newResponse(b)
	first := newRequest("POST", referencePath, setAll)
	first.Body = requestBody{strings.NewReader(setAll)}
	h.ServeHTTP(w, first)
	r := newRequest(method, path, body)
	b.ReportAllocs()
	for b.Loop() {
		r.Body = http.NoBody
		if body != "" {
			r.Body = requestBody{strings.NewReader(body)}
		}
		clear(w.header)
		w.status = 0
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

// requestBody is a body whose Close does nothing.
type requestBody struct{ *strings.Reader }

func (requestBody) Close() error { return nil }

// response is an [http.ResponseWriter] that costs nothing, except that setting a read
// deadline costs as much as on a socket.
type response struct {
	header http.Header
	status int
	conn   net.Conn
}

func newResponse(tb testing.TB) *response {
	tb.Helper()
	conn, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })
	return &response{header: make(http.Header), conn: conn}
}

func (w *response) Header() http.Header                      { return w.header }
func (w *response) WriteHeader(status int)                   { w.status = status }
func (w *response) SetReadDeadline(deadline time.Time) error { return w.conn.SetReadDeadline(deadline) }

func (w *response) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return len(p), nil
}
