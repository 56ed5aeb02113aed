package webhookcfg_test

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestThrottledVerifier: a verifier can ask the client to wait, even if the credentials are
// wrong. Retry-After is at least a second.
func TestThrottledVerifier(t *testing.T) {
	for wait, want := range map[time.Duration]string{90 * time.Second: "90", 1001 * time.Millisecond: "2", 0: "1", -time.Second: "1", math.MaxInt64: "9223372037"} {
		h := hooktest.NewHandler(t, newRecorder(), verifier(func(context.Context, string, string) (webhookcfg.Client, error) {
			return webhookcfg.Client{}, errors.Join(webhookcfg.ErrInvalidCredentials, retryError{wait})
		}), options())
		w := httptest.NewRecorder()
		h.ServeHTTP(w, setRequest())
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != want {
			t.Errorf("wait %v: got %d, Retry-After %q", wait, w.Code, w.Header().Get("Retry-After"))
		}
	}
}
