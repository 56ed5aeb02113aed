package webhookcfg_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestClientID: a client's ID that no store could keep, or no log could show, is a defect of
// the verifier.
func TestClientID(t *testing.T) {
	tests := []struct {
		id string
		ok bool
	}{
		{"", false},
		{" ", false},
		{"\u00a0\u2003", false},
		{"a\nb", false},
		{"a\x00", false},
		{"\u0085", false},
		{"\x7f", false},
		{"\xff", false},
		{strings.Repeat("x", 1025), false},
		{strings.Repeat("x", 1024), true},
		{"a b", true},
		{"customer/ü-1", true},
	}
	for _, tt := range tests {
		st := newRecorder()
		h := hooktest.NewHandler(t, st, verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{ID: tt.id}, nil
		}), options())
		w := httptest.NewRecorder()
		h.ServeHTTP(w, setRequest())
		if changes := st.take(); tt.ok != (w.Code == http.StatusOK) || tt.ok != (changes != nil) || !tt.ok && errorCode(w.Body.String()) != "server_error" {
			t.Errorf("%.10q: got %d %s, and the store saw %q", tt.id, w.Code, w.Body, changes)
		}
	}
}
