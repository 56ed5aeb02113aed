// Package hooktest has small helpers that the tests of several packages share.
package hooktest

import (
	"encoding/gob"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
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

// URL returns a URL that is different for each n. It's long enough that a few records fill a
// sector.
func URL(n int) egress.URL {
	return egress.NewURL(fmt.Sprintf("https://hooks.example.com/%d/%s", n, strings.Repeat("x", 100)))
}

// At returns a change with the time n. The time has microseconds.
func At(n int, c webhookcfg.Change) webhookcfg.Change {
	c.Time = time.Unix(1_800_000_000+int64(n), 0).Add(time.Duration(n) * time.Microsecond).UTC()
	return c
}

// Set returns a change that sets an entity to URL(n) at the time n.
func Set(client, entity string, n int) webhookcfg.Change {
	return At(n, webhookcfg.SetChange(client, webhookcfg.Entity(entity), URL(n)))
}

// SetAll returns a change that sets all entities to URL(n) at the time n.
func SetAll(client string, n int) webhookcfg.Change {
	return At(n, webhookcfg.SetChange(client, webhookcfg.All(), URL(n)))
}

// Unset returns a change that unsets an entity at the time n.
func Unset(client, entity string, n int) webhookcfg.Change {
	return At(n, webhookcfg.UnsetChange(client, webhookcfg.Entity(entity)))
}

// UnsetAll returns a change that unsets all entities at the time n.
func UnsetAll(client string, n int) webhookcfg.Change {
	return At(n, webhookcfg.UnsetChange(client, webhookcfg.All()))
}

// Apply makes changes, and fails the test if one of them fails.
func Apply(t testing.TB, st webhookcfg.Store, changes ...webhookcfg.Change) {
	t.Helper()
	for _, c := range changes {
		if err := st.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// Describe returns everything about a webhook as a text that you can compare. It's "" for no
// webhook.
func Describe(w webhookcfg.Webhook) string {
	if w.Source == webhookcfg.SourceNone {
		return ""
	}
	return fmt.Sprint(w.Source, " ", w.URL.Reveal(), " ", w.Since.UnixMicro())
}

// NewVerifier returns a verifier for one client. The secret must have at least 16 characters.
func NewVerifier(t testing.TB, id, secret string) webhookcfg.CredentialVerifier {
	t.Helper()
	v, err := auth.NewStatic(auth.Credential{ID: id, Secrets: []auth.Secret{auth.NewSecret(secret)}})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// NewHandler returns a handler. It fails the test if the options aren't valid.
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

// Prints returns everything that fmt, slog and the encoders of the standard library show of a
// value, so you can check that a log doesn't show too much.
func Prints(value any) string {
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%o", "%b", "%20v", "%-20.3s", "%t", "%c", "%U", "%e", "%p", "%w", "%y"} {
		fmt.Fprintf(&out, verb+"\n", value)
	}
	fmt.Fprintln(&out, value)
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).With("with", value).Info("m", "value", value, slog.Group("group", "value", value))
	}
	// It's fine if an encoder refuses the value.
	_ = json.NewEncoder(&out).Encode(value)
	_ = xml.NewEncoder(&out).Encode(value)
	_ = gob.NewEncoder(&out).Encode(value)
	return out.String()
}

// ReplaceErrors is a middleware that replaces the body of each error with a page, as many
// services do, and leaves the header alone.
func ReplaceErrors(next http.Handler, page string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(&errorPage{ResponseWriter: w, page: page}, r)
	})
}

type errorPage struct {
	http.ResponseWriter
	page    string
	isError bool
}

func (w *errorPage) WriteHeader(status int) {
	w.ResponseWriter.WriteHeader(status)
	if status >= http.StatusBadRequest {
		w.isError = true
		_, _ = io.WriteString(w.ResponseWriter, w.page)
	}
}

func (w *errorPage) Write(body []byte) (int, error) {
	if w.isError {
		return len(body), nil
	}
	return w.ResponseWriter.Write(body)
}

func (w *errorPage) Unwrap() http.ResponseWriter { return w.ResponseWriter }
