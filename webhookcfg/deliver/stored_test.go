package deliver_test

import (
	"testing"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestStoredURL: a URL that was set before there was a rule for its characters still gets its
// notifications.
func TestStoredURL(t *testing.T) {
	r := newReceiver(t, false, status(204))
	s := newSender(t, configured(t, r.URL+"/{id}/a|b,http://example.com/"), keyring{deliver.GenerateKey()}, nil)
	check(t, "stored URL", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
}
