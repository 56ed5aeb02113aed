package webhookcfg_test

import (
	"net/http"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/google/go-cmp/cmp"
)

// TestErrorTable pins the statuses of the error codes.
func TestErrorTable(t *testing.T) {
	want := map[string]int{
		"invalid_request":         http.StatusBadRequest,
		"invalid_webhook_url":     http.StatusBadRequest,
		"webhook_unreachable":     http.StatusBadRequest,
		"invalid_client":          http.StatusUnauthorized,
		"all_refused":             http.StatusForbidden,
		"not_found":               http.StatusNotFound,
		"unknown_entity":          http.StatusNotFound,
		"method_not_allowed":      http.StatusMethodNotAllowed,
		"request_too_large":       http.StatusRequestEntityTooLarge,
		"unsupported_media_type":  http.StatusUnsupportedMediaType,
		"too_many_requests":       http.StatusTooManyRequests,
		"server_error":            http.StatusInternalServerError,
		"temporarily_unavailable": http.StatusServiceUnavailable,
	}
	if diff := cmp.Diff(want, webhookcfg.ErrorTable()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
