// Package delivertest has a receiver of notifications for your tests. It verifies signatures,
// keeps what arrives, and fails as you tell it to.
//
//	receiver := delivertest.NewReceiver(t, key)
//	// Set receiver.URL() as a webhook, and let your service send something.
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
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

const (
	maxBody      = 1 << 20
	maxClockSkew = 5 * time.Minute
)

// Receiver is an HTTP server that receives notifications. It's safe for concurrent use.
type Receiver struct {
	t      testing.TB
	keys   []deliver.Key
	server *httptest.Server

	mu       sync.Mutex
	behavior behavior
	hang     chan struct{} // closed when requests that hang go on
	arrived  chan struct{} // closed and replaced with each attempt
	attempts []Attempt
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

// behavior is what the receiver does with valid requests. The zero behavior hangs.
type behavior struct {
	status    int
	field     string // of the response
	value     string
	disappear bool
}

var healthy = behavior{status: http.StatusNoContent}

// NewReceiver starts a receiver that accepts requests signed with one of the keys. It stops
// when the test ends. A request without a valid signature gets a 401, and fails the test.
func NewReceiver(t testing.TB, keys ...deliver.Key) *Receiver {
	r := &Receiver{t: t, keys: slices.Clone(keys), behavior: healthy, hang: make(chan struct{}), arrived: make(chan struct{})}
	r.server = httptest.NewUnstartedServer(r)
	r.server.Config.ConnState = r.connect
	r.server.Start()
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
	seconds := strconv.Itoa(int(d.Round(time.Second) / time.Second))
	r.become(behavior{status: http.StatusTooManyRequests, field: "Retry-After", value: seconds})
}

// Redirect makes the receiver redirect to its own URL.
func (r *Receiver) Redirect() {
	r.become(behavior{status: http.StatusTemporaryRedirect, field: "Location", value: r.URL()})
}

// Hang makes the receiver accept requests without a response, until Recover is called or the
// sender gives up.
func (r *Receiver) Hang() { r.become(behavior{}) }

// Disappear makes the receiver close connections at once, new ones too.
func (r *Receiver) Disappear() {
	r.become(behavior{disappear: true})
	r.server.CloseClientConnections()
}

// Recover makes the receiver respond with status 204 again, as it does at first. Requests that
// hang get that response, too.
func (r *Receiver) Recover() { r.become(healthy) }

func (r *Receiver) become(b behavior) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behavior = b
	close(r.hang)
	r.hang = make(chan struct{})
}

func (r *Receiver) connect(conn net.Conn, state http.ConnState) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.behavior.disappear && state == http.StateNew {
		_ = conn.Close()
	}
}

// Received returns the messages that got a 2xx, in the order in which they arrived.
func (r *Receiver) Received() (all []deliver.Message) {
	for _, a := range r.Attempts() {
		if a.Status/100 == 2 {
			all = append(all, a.Message)
		}
	}
	return all
}

// Attempts returns all requests with a valid signature that have ended.
func (r *Receiver) Attempts() []Attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.attempts)
}

// Wait waits until at least n messages have been received, and returns them. If ctx ends
// first, it fails the test.
func (r *Receiver) Wait(ctx context.Context, n int) []deliver.Message {
	r.t.Helper()
	for {
		r.mu.Lock()
		arrived := r.arrived
		r.mu.Unlock()
		received := r.Received()
		if len(received) >= n {
			return received
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			r.t.Fatalf("delivertest: %d messages received, want %d: %v", len(received), n, ctx.Err())
		}
	}
}

// ServeHTTP implements [http.Handler].
func (r *Receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxBody))
	if err == nil {
		err = r.verify(req, body)
	}
	if err != nil {
		r.t.Errorf("delivertest: %s %s: %v", req.Method, req.URL.Path, err)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	a := Attempt{
		Message: deliver.Message{ID: req.Header.Get("Webhook-Id"), Body: body, ContentType: req.Header.Get("Content-Type")},
		Header:  req.Header,
	}
	b := r.behave(req.Context())
	if a.Status = b.status; b.status != 0 {
		w.Header()[b.field] = []string{b.value}
		delete(w.Header(), "")
	}
	r.mu.Lock()
	r.attempts = append(r.attempts, a)
	close(r.arrived)
	r.arrived = make(chan struct{})
	r.mu.Unlock()
	if b.status == 0 {
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(b.status)
}

// behave returns the present behavior once it doesn't hang, or the sender gave up.
func (r *Receiver) behave(ctx context.Context) behavior {
	for {
		r.mu.Lock()
		b, hang := r.behavior, r.hang
		r.mu.Unlock()
		if b.status != 0 || b.disappear {
			return b
		}
		select {
		case <-hang:
		case <-ctx.Done():
			return b
		}
	}
}

// verify checks a request as the Standard Webhooks specification says (version 1.0.0).
func (r *Receiver) verify(req *http.Request, body []byte) error {
	id, timestamp := req.Header.Get("Webhook-Id"), req.Header.Get("Webhook-Timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	switch {
	case req.Method != http.MethodPost:
		return errors.New("the method is not POST")
	case id == "":
		return errors.New("no webhook-id")
	case err != nil:
		return fmt.Errorf("webhook-timestamp: %w", err)
	case time.Since(time.Unix(seconds, 0)).Abs() > maxClockSkew:
		return fmt.Errorf("webhook-timestamp %s is more than %v from now", timestamp, maxClockSkew)
	}
	for signature := range strings.FieldsSeq(req.Header.Get("Webhook-Signature")) {
		for _, key := range r.keys {
			if hmac.Equal([]byte(signature), []byte(sign(key, id, timestamp, body))) {
				return nil
			}
		}
	}
	return errors.New("no signature with a key of the receiver")
}

func sign(key deliver.Key, id, timestamp string, body []byte) string {
	secret, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(key.Reveal(), "whsec_"))
	mac := hmac.New(sha256.New, secret)
	_, _ = fmt.Fprintf(mac, "%s.%s.%s", id, timestamp, body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
