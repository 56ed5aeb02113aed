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
	"sync/atomic"
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

// loop is a whole service: a client over HTTP, the handler, the sender, and a receiver.
type loop struct {
	*deliver.Sender
	base     string
	receiver *receiver
	respond  atomic.Pointer[http.HandlerFunc] // of the receiver
	now      atomic.Pointer[time.Time]        // of the handler
}

type acmeOnly struct{}

func (acmeOnly) Verify(context.Context, string, string) (webhookcfg.Client, error) {
	return webhookcfg.Client{ID: "acme"}, nil
}

func newLoop(t *testing.T) *loop {
	t.Helper()
	l := &loop{}
	l.receiver = newReceiver(t, false, func(w http.ResponseWriter, r *http.Request) { (*l.respond.Load())(w, r) })
	st, health := store.NewMemory(), newHealth(t, nil, nil)
	h := hooktest.NewHandler(t, st, acmeOnly{}, &webhookcfg.Options{
		Policy: egress.Development(), Reads: true, DeliveryStatus: health.Status,
		Now: func() time.Time { return *l.now.Load() },
	})
	l.base = hooktest.Serve(t, h).URL + "/api/v1/configure/configure-webhook"
	l.Sender = newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Health: health})
	return l
}

func (l *loop) responds(f http.HandlerFunc) { l.respond.Store(&f) }

// request makes a request of the client.
func (l *loop) request(t *testing.T, method, target, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.SetBasicAuth("acme", "s3cret")
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", method, resp.StatusCode, text, err)
	}
	return string(text)
}

// set sets the webhook of e1, by a clock that shows at.
func (l *loop) set(t *testing.T, at time.Time) {
	t.Helper()
	l.now.Store(&at)
	l.request(t, "POST", l.base, fmt.Sprintf(`{"endpoint_id":"e1","webhook_url":%q}`, l.receiver.URL+secretPath))
}

// readable is a read of e1 with a delivery, with no more than words of the interface and times.
var readable = regexp.MustCompile(`^\{"endpoint_id":"e1","webhook_url":"[^"]*","source":"override","since":"[-0-9TZ:]{20}","delivery":` +
	`\{"state":"(ok|failing|stopped)"(?:,"reason":"(unreachable|redirect|throttled|status|gone|refused|expired)")?` +
	`(?:,"last_success":"[-0-9TZ:]{20}")?(?:,"last_failure":"[-0-9TZ:]{20}")?\}\}$`)

// read returns the state and the reason that the client reads; "" if it reads none.
func (l *loop) read(t *testing.T) string {
	t.Helper()
	text := l.request(t, "GET", l.base+"/e1", "")
	found := readable.FindStringSubmatch(text)
	if found == nil {
		if strings.Contains(text, "delivery") {
			t.Errorf("the client reads %s", text)
		}
		return ""
	}
	return strings.TrimSpace(found[1] + " " + found[2])
}

// TestLoop: after a 410 nothing is sent until the client sets the webhook again, also in the
// second of the 410, and the client reads all of it.
func TestLoop(t *testing.T) {
	for _, tt := range []struct {
		name       string
		first      time.Duration // when it is set, from now
		gone, then string        // what the client reads after the 410, and after it set again
		again      time.Duration // when it is set again, from now
	}{
		{"set again in another second", -time.Hour, "stopped gone", "", -time.Minute},
		{"set again in the second of the 410", -time.Hour, "stopped gone", "", 0},
		{"set again by a clock that stands still", -time.Hour, "stopped gone", "", -time.Hour},
		{"set again by a clock behind", -time.Hour, "stopped gone", "", -2 * time.Hour},
		{"set, gone and set again by a clock ahead", time.Hour, "stopped gone", "", time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, now := newLoop(t), time.Now()
			send := func(outcome deliver.Outcome, reason deliver.Reason, calls int) {
				t.Helper()
				before := len(l.receiver.received())
				check(t, "Send", l.Send(t.Context(), "acme", "e1", message), outcome, reason)
				if n := len(l.receiver.received()) - before; n != calls {
					t.Errorf("the receiver was called %d times, want %d", n, calls)
				}
			}
			reads := func(want string) {
				t.Helper()
				if got := l.read(t); got != want {
					t.Errorf("the client reads %q, want %q", got, want)
				}
			}
			l.set(t, now.Add(tt.first))
			reads("")
			l.responds(status(http.StatusOK))
			send(deliver.Delivered, "", 1)
			reads("ok")
			l.responds(status(http.StatusGone))
			send(deliver.Undeliverable, deliver.ReasonGone, 1)
			reads(tt.gone)
			send(deliver.Undeliverable, deliver.ReasonStopped, 0)
			reads(tt.gone)
			l.responds(status(http.StatusOK))
			l.set(t, now.Add(tt.again))
			reads(tt.then)
			send(deliver.Delivered, "", 1)
			reads("ok")
		})
	}
}

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
			h := hooktest.NewHandler(t, st, acmeOnly{}, &webhookcfg.Options{Policy: p, Reads: true, DeliveryStatus: health.Status})
			s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: p, Health: health})
			if r := s.Send(t.Context(), "acme", "e1", message); r.Outcome != deliver.Failed || r.Duration > 0 != (name == "filtered") {
				t.Errorf("%s: %v after %v", name, r.Outcome, r.Duration)
			}
			w, read := httptest.NewRecorder(), httptest.NewRequest("GET", "/api/v1/configure/configure-webhook/e1", nil)
			read.SetBasicAuth("acme", "s3cret")
			h.ServeHTTP(w, read)
			reads = append(reads, w.Body.String())
		})
	}
	if reads[0] != reads[1] || !strings.Contains(reads[0], `"last_failure":"2000-01-01T00:00:00Z"`) {
		t.Errorf("the client reads %q", reads)
	}
}

// TestLoopDiscloses: nothing that a receiver sends reaches the client but one word.
func TestLoopDiscloses(t *testing.T) {
	want := map[int]string{
		200: "ok", 299: "ok", 300: "failing redirect", 304: "failing redirect", 308: "failing redirect", 399: "failing redirect",
		400: "failing status", 401: "failing status", 404: "failing status", 418: "failing status", 429: "failing throttled",
		500: "failing status", 501: "failing status", 502: "failing throttled", 503: "failing throttled", 504: "failing throttled",
		599: "failing status", 999: "failing status", 410: "stopped gone",
	}
	for code, state := range want {
		l := newLoop(t) // without the pauses of a receiver that fails
		l.set(t, time.Now().Add(-time.Hour))
		l.responds(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://l34k.example.com/"+fmt.Sprint(code))
			w.Header().Set("Retry-After", "0")
			w.Header().Set("Server", "l34k")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"error":"l34k"}`)
		})
		if r := l.Send(t.Context(), "acme", "e1", message); r.Status != code {
			t.Errorf("status %d: %+v", code, r)
		}
		if got := l.read(t); got != state { // which also checks the rest of the response
			t.Errorf("status %d: the client reads %q, want %q", code, got, state)
		}
	}
}
