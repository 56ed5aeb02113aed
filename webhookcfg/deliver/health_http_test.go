package deliver_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

type acmeOnly struct{}

func (acmeOnly) Verify(context.Context, string, string) (webhookcfg.Client, error) {
	return webhookcfg.Client{ID: "acme"}, nil
}

// read returns what the client reads about e1.
func read(t *testing.T, st webhookcfg.Store, health *deliver.Health, p *egress.Policy) string {
	t.Helper()
	h := hooktest.NewHandler(t, st, acmeOnly{}, &webhookcfg.Options{Policy: p, Reads: true, DeliveryStatus: health.Status})
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/api/v1/configure/configure-webhook/e1", nil)
	r.SetBasicAuth("acme", "s3cret")
	h.ServeHTTP(w, r)
	return w.Body.String()
}

// readable is a read of e1 with a delivery, with no more than words of the interface and times.
var readable = regexp.MustCompile(`^\{"endpoint_id":"e1","webhook_url":"[^"]*","source":"base","since":"[-0-9TZ:]{20}","delivery":` +
	`\{"state":"(ok|failing|stopped)"(?:,"reason":"(unreachable|redirect|throttled|status|gone|refused|expired)")?` +
	`(?:,"last_success":"[-0-9TZ:]{20}")?(?:,"last_failure":"[-0-9TZ:]{20}")?\}\}$`)

// TestTimesOfAttempts: a client reads when an attempt started. The end would tell it how long the
// receiver took, and the start of Send may be earlier than the set.
func TestTimesOfAttempts(t *testing.T) {
	for _, code := range []int{http.StatusOK, http.StatusNotFound, http.StatusGone} {
		var resolved, called time.Time
		r := newReceiver(t, false, func(w http.ResponseWriter, _ *http.Request) {
			called = time.Now()
			w.WriteHeader(code)
		})
		st, health := configured(t, r.URL), newHealth(t, nil, nil)
		resolve := resolver(func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
			defer func() { resolved = time.Now() }()
			return st.Resolve(ctx, client, entity)
		})
		s := newSender(t, resolve, keyring{deliver.GenerateKey()}, &deliver.Options{Health: health})
		hook := s.Send(t.Context(), "acme", "e1", message).Webhook
		d, err := health.Load(t.Context(), "acme", "e1", hook)
		if err != nil {
			t.Fatal(err)
		}
		at := d.LastSuccess
		if code != http.StatusOK {
			at = d.LastFailure
		}
		if at.Before(resolved.Truncate(time.Microsecond)) || at.After(called) {
			t.Errorf("status %d: the attempt at %v is recorded; it started after %v and before %v", code, at, resolved, called)
		}
	}
}

// TestFailureTimes: a client can't tell a port that refuses at once from a filtered one, which
// takes until the time limit: both show the same time and the same reason.
func TestFailureTimes(t *testing.T) {
	dials := map[string]dialFunc{
		"refused":  func(context.Context, string, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED },
		"filtered": func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() },
	}
	var reads []string
	for name, dial := range dials {
		synctest.Test(t, func(t *testing.T) {
			st, health, p := configured(t, "http://example.com"), newHealth(t, nil, nil), policyInMemory(dial)
			s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: p, Health: health})
			if r := s.Send(t.Context(), "acme", "e1", message); r.Outcome != deliver.Failed || r.Duration > 0 != (name == "filtered") {
				t.Errorf("%s: %v after %v", name, r.Outcome, r.Duration)
			}
			reads = append(reads, read(t, st, health, p))
		})
	}
	if reads[0] != reads[1] || !strings.Contains(reads[0], `"last_failure":"2000-01-01T00:00:00Z"`) {
		t.Errorf("the client reads %q", reads)
	}
}

// TestReadDiscloses: nothing that a receiver sends reaches the client but one word.
func TestReadDiscloses(t *testing.T) {
	want := map[int]string{
		200: "ok", 299: "ok", 300: "failing redirect", 304: "failing redirect", 308: "failing redirect", 399: "failing redirect",
		400: "failing status", 401: "failing status", 404: "failing status", 418: "failing status", 429: "failing throttled",
		500: "failing status", 501: "failing status", 502: "failing throttled", 503: "failing throttled", 504: "failing throttled",
		599: "failing status", 999: "failing status", 410: "stopped gone",
	}
	for code, state := range want {
		r := newReceiver(t, false, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://l34k.example.com/"+fmt.Sprint(code))
			w.Header().Set("Retry-After", "0")
			w.Header().Set("Server", "l34k")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"error":"l34k"}`)
		})
		st, health := store.NewMemory(), newHealth(t, nil, nil)
		setNow(t, st, webhookcfg.All(), r.URL+secretPath)
		s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Health: health}) // without the pauses of a receiver that fails
		if r := s.Send(t.Context(), "acme", "e1", message); r.Status != code {
			t.Errorf("status %d: %+v", code, r)
		}
		text := read(t, st, health, egress.Development())
		if found := readable.FindStringSubmatch(text); found == nil || strings.TrimSpace(found[1]+" "+found[2]) != state {
			t.Errorf("status %d: the client reads %s, want %q", code, text, state)
		}
	}
}
