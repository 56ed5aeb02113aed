// Package delivertest has a receiver of notifications for your tests. It verifies signatures,
// keeps what arrives, and fails as you tell it to.
//
//	receiver := delivertest.NewReceiver(t, keys, deliver.Recipient{Client: "acme"})
//	// Set receiver.URL() as the base of acme, and let your service send something.
//	arrived := receiver.Wait(t.Context(), 1)
//
// The receiver listens on loopback without TLS, so your handler and your sender need
// [example.com/go-webhookcfg/webhookcfg/egress.Development] as their policy.
package delivertest

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Receiver is an HTTP server that receives notifications. It's safe for concurrent use.
type Receiver struct {
	t      testing.TB
	keys   deliver.Keys
	to     deliver.Recipient
	server *httptest.Server

	mu       sync.Mutex
	changed  *sync.Cond
	behavior behavior
	attempts []Attempt
	received []deliver.Message
}

// Attempt is a request with a valid signature.
type Attempt struct {
	// Message is what arrived.
	Message deliver.Message
	// Header is the header of the request.
	Header http.Header
	// Status is the status of the response, or 0 if there was none.
	Status int
}

// behavior is what the receiver does with valid requests.
type behavior struct {
	hangs        bool
	status       int    // 0: none, the connection ends
	field, value string // in the header
}

// NewReceiver starts the receiver of a client's base, the default webhook, or, if the recipient
// has an Entity, of its override. It accepts requests that are signed with one of the keys for
// this recipient, which gets the receiver's URL. It stops when the test ends. A request without
// a valid signature gets a 401, and fails the test.
func NewReceiver(t testing.TB, keys deliver.Keys, to deliver.Recipient) *Receiver {
	r := &Receiver{t: t, keys: keys, to: to, behavior: behavior{status: http.StatusNoContent}}
	r.changed = sync.NewCond(&r.mu)
	r.server = httptest.NewServer(http.HandlerFunc(r.serve))
	r.to.Webhook.URL = egress.NewURL(r.URL())
	t.Cleanup(func() {
		r.Recover()
		r.server.Close()
	})
	return r
}

// URL returns the URL of the receiver. Its path contains a token, as that of a real one often
// does, so that you can search your logs for it.
func (r *Receiver) URL() string { return r.server.URL + "/in/T0KEN" }

// Fail makes the receiver respond with a status, for example 500, or 410 if it wants no more
// notifications.
func (r *Receiver) Fail(status int) { r.become(behavior{status: status}) }

// Pause makes the receiver respond with status 429, and ask for a pause in whole seconds.
func (r *Receiver) Pause(d time.Duration) {
	r.become(behavior{status: http.StatusTooManyRequests, field: "Retry-After", value: strconv.Itoa(int(d.Seconds()))})
}

// Redirect makes the receiver redirect to its own URL.
func (r *Receiver) Redirect() {
	r.become(behavior{status: http.StatusTemporaryRedirect, field: "Location", value: r.URL()})
}

// Hang makes the receiver accept requests without a response, until it becomes something else
// or the sender gives up.
func (r *Receiver) Hang() { r.become(behavior{hangs: true}) }

// Disappear makes the receiver close the connection of each request without a response.
func (r *Receiver) Disappear() { r.become(behavior{}) }

// Recover makes the receiver respond with status 204 again, as it does at first.
func (r *Receiver) Recover() { r.Fail(http.StatusNoContent) }

func (r *Receiver) become(b behavior) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behavior = b
	r.changed.Broadcast()
}

// Attempts returns all requests with a valid signature that have ended.
func (r *Receiver) Attempts() []Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.attempts)
}

// Received returns the messages that got a 2xx, in the order in which they arrived.
func (r *Receiver) Received() []deliver.Message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.received)
}

// Wait waits until at least n messages have been received, and returns them. If ctx ends
// first, it fails the test.
func (r *Receiver) Wait(ctx context.Context, n int) []deliver.Message {
	r.t.Helper()
	if !r.await(ctx, func() bool { return len(r.received) >= n }) {
		r.t.Fatalf("delivertest: %d messages received, want %d: %v", len(r.Received()), n, ctx.Err())
	}
	return r.Received()
}

// await waits until something holds, and reports whether it does before ctx ends.
func (r *Receiver) await(ctx context.Context, holds func() bool) bool {
	defer context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.changed.Broadcast()
	})()
	r.mu.Lock()
	defer r.mu.Unlock()
	for !holds() {
		if ctx.Err() != nil {
			return false
		}
		r.changed.Wait()
	}
	return true
}

func (r *Receiver) serve(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	m := deliver.Message{ID: req.Header.Get("Webhook-Id"), Body: body, ContentType: req.Header.Get("Content-Type")}
	if err == nil {
		err = r.verify(req, m)
	}
	if err != nil {
		r.t.Errorf("delivertest: %s %s: %v", req.Method, req.URL.Path, err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	b := r.take(req, m)
	if b.status == 0 {
		panic(http.ErrAbortHandler)
	}
	if b.field != "" {
		w.Header().Set(b.field, b.value)
	}
	w.WriteHeader(b.status)
}

// take keeps a message once the receiver doesn't hang, and returns what to do with it.
func (r *Receiver) take(req *http.Request, m deliver.Message) behavior {
	r.await(req.Context(), func() bool { return !r.behavior.hangs })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.attempts = append(r.attempts, Attempt{m, req.Header, r.behavior.status})
	if r.behavior.status/100 == 2 {
		r.received = append(r.received, m)
	}
	r.changed.Broadcast()
	return r.behavior
}

// verify checks a request as the Standard Webhooks specification says (version 1.0.0).
func (r *Receiver) verify(req *http.Request, m deliver.Message) error {
	const maxClockSkew = 5 * time.Minute
	timestamp := req.Header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > maxClockSkew {
		return fmt.Errorf("webhook-timestamp is %q, want a time within %v from now", timestamp, maxClockSkew)
	}
	keys, err := r.keys.Keys(req.Context(), r.to)
	for _, key := range keys {
		secret, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(key.Reveal(), "whsec_"))
		mac := hmac.New(sha256.New, secret)
		_, _ = fmt.Fprintf(mac, "%s.%s.%s", m.ID, timestamp, m.Body)
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		if slices.Contains(strings.Fields(req.Header.Get("Webhook-Signature")), want) {
			return m.Validate()
		}
	}
	return fmt.Errorf("no signature with one of %d keys (%v)", len(keys), err)
}
