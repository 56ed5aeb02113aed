// Package hooktest holds small helpers that the tests of several packages share.
package hooktest

import (
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/auth"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// URL returns one of many URLs, which is long enough for a few records to fill a sector.
func URL(n int) egress.URL {
	return egress.NewURL(fmt.Sprintf("https://hooks.example.com/%d/%s", n, strings.Repeat("x", 100)))
}

// At returns a change with the time n, which has microseconds.
func At(n int, c webhookcfg.Change) webhookcfg.Change {
	c.Time = time.Unix(1_800_000_000+int64(n), 0).Add(time.Duration(n) * time.Microsecond).UTC()
	return c
}

// Set returns the change at the time n that gives an entity URL(n).
func Set(client, entity string, n int) webhookcfg.Change {
	return At(n, webhookcfg.SetChange(client, webhookcfg.Entity(entity), URL(n)))
}

// SetAll returns the change at the time n that gives all entities URL(n).
func SetAll(client string, n int) webhookcfg.Change {
	return At(n, webhookcfg.SetChange(client, webhookcfg.All(), URL(n)))
}

// Unset returns the change at the time n that leaves an entity without a webhook.
func Unset(client, entity string, n int) webhookcfg.Change {
	return At(n, webhookcfg.UnsetChange(client, webhookcfg.Entity(entity)))
}

// UnsetAll returns the change at the time n that leaves all entities without a webhook.
func UnsetAll(client string, n int) webhookcfg.Change {
	return At(n, webhookcfg.UnsetChange(client, webhookcfg.All()))
}

// Apply makes changes, which must not fail.
func Apply(t testing.TB, st webhookcfg.Store, changes ...webhookcfg.Change) {
	t.Helper()
	for _, c := range changes {
		if err := st.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// Describe returns all that a webhook says, to compare it; "" for no webhook.
func Describe(w webhookcfg.Webhook) string {
	if w.Source == webhookcfg.SourceNone {
		return ""
	}
	return fmt.Sprint(w.Source, " ", w.URL.Reveal(), " ", w.Since.UnixMicro())
}

// NewVerifier returns a verifier for one client with a secret of at least 16 characters.
func NewVerifier(t testing.TB, id, secret string) webhookcfg.CredentialVerifier {
	t.Helper()
	v, err := auth.NewStatic(auth.Credential{ID: id, Secrets: []auth.Secret{auth.NewSecret(secret)}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// NewHandler returns a handler with options that must be valid.
func NewHandler(t testing.TB, st webhookcfg.Store, v webhookcfg.CredentialVerifier, o *webhookcfg.Options) *webhookcfg.Handler {
	t.Helper()
	h, err := webhookcfg.NewHandler(st, v, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Serve serves a handler over loopback until the test ends.
func Serve(t testing.TB, h http.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

// Prints returns all that fmt, slog and the encoders of the standard library show of a
// value: what a log may hold of it.
func Prints(value any) string {
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%20v", "%-20.3s", "%t", "%c", "%U", "%e", "%p", "%w", "%y"} {
		fmt.Fprintf(&out, verb+"\n", value)
	}
	fmt.Fprintln(&out, value)
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).With("with", value).Info("m", "value", value, slog.Group("group", "value", value))
	}
	// An error means that the encoder refuses the value.
	_ = json.NewEncoder(&out).Encode(value)
	_ = xml.NewEncoder(&out).Encode(value)
	_ = gob.NewEncoder(&out).Encode(value)
	return out.String()
}
