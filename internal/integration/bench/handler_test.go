package main

import (
	"net/http"
	"strings"
	"testing"
)

// TestReferences: the handlers that we compare the library with check requests, too.
func TestReferences(t *testing.T) {
	for _, f := range append([]framework{{"net/http", func(h *reference) http.Handler { return h }}}, frameworks...) {
		h := f.new(newReference(clientID, clientSecret))
		for _, q := range []struct {
			method, path, body string
			ok                 bool
		}{
			{"POST", referencePath, setAll, true},
			{"POST", referencePath, `{"endpoint_id":"e1","webhook_url":"https://hooks.example.com/e1"}`, true},
			{"POST", referencePath, `{"endpoint_id":"..","webhook_url":"https://hooks.example.com/e1"}`, false},
			{"POST", referencePath, `{"webhook_url":"https://127.0.0.1/"}`, false},
			{"POST", referencePath, `{"webhook_url":"https://hooks.example.com/","other":""}`, f.name == "gin" || f.name == "echo"},
			{"DELETE", referencePath + "/e1", "", true},
			{"DELETE", referencePath + "/%2e%2e", "", false},
			{"DELETE", referencePath, "", true},
			{"DELETE", referencePath + "?x", "", false},
		} {
			w := newResponse(t)
			r := newRequest(q.method, q.path, q.body)
			r.Body = requestBody{strings.NewReader(q.body)}
			h.ServeHTTP(w, r)
			if ok := w.status == http.StatusOK; ok != q.ok {
				t.Errorf("%s: %s %s %s: status %d", f.name, q.method, q.path, q.body, w.status)
			}
		}
		r := newRequest("DELETE", referencePath, "")
		r.SetBasicAuth(clientID, "wrong")
		w := newResponse(t)
		if h.ServeHTTP(w, r); w.status != http.StatusUnauthorized {
			t.Errorf("%s, wrong secret: status %d", f.name, w.status)
		}
	}
}
