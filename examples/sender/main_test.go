package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	"example.com/go-webhookcfg/internal/hostile"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if want := "received at /in: {\"type\":\"module.updated\"}\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

func TestSignature(t *testing.T) {
	const key = signingKey("sixteen bytes or more")
	at := time.Unix(1614265330, 0)
	h := http.Header{}
	h.Set("Webhook-Id", "msg_1")
	h.Set("Webhook-Timestamp", "1614265330")
	h.Set("Webhook-Signature", key.sign("msg_1", at, []byte("{}")))
	if err := key.verify(h, []byte("{}"), at.Add(time.Minute)); err != nil {
		t.Errorf("valid signature: %v", err)
	}
	if err := key.verify(h, []byte("[]"), at); !errors.Is(err, errSignature) {
		t.Errorf("another body: %v", err)
	}
	if err := key.verify(h, []byte("{}"), at.Add(time.Hour)); !errors.Is(err, errSignature) {
		t.Errorf("an old signature: %v", err)
	}
	if err := signingKey("other").verify(h, []byte("{}"), at); !errors.Is(err, errSignature) {
		t.Errorf("another key: %v", err)
	}
}

// TestRefused: a policy that does not allow loopback refuses the receiver, and the error
// does not contain the path of the URL.
func TestRefused(t *testing.T) {
	called := false
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true }))
	defer receiver.Close()
	strict, err := (&egress.Policy{AllowHTTP: true}).Client(nil)
	if err != nil {
		t.Fatal(err)
	}
	st := store.NewMemory()
	if err := st.Apply(t.Context(), webhookcfg.Set("acme", webhookcfg.All(), egress.NewURL(receiver.URL+"/t0ken"))); err != nil {
		t.Fatal(err)
	}
	err = sender{st, strict, "key", time.Now}.send(t.Context(), "acme", "e1", nil)
	if !errors.Is(err, egress.ErrNotPublic) || strings.Contains(err.Error(), "t0ken") || called {
		t.Errorf("called %v, error %v", called, err)
	}
	if err := (sender{st, strict, "key", time.Now}).send(t.Context(), "unknown", "e1", nil); err != nil {
		t.Errorf("without a webhook: %v", err)
	}
}

// TestHostileReceivers: whatever a receiver does, a delivery ends with its deadline, leaves
// nothing open, and no error contains what was received.
func TestHostileReceivers(t *testing.T) {
	log.SetOutput(io.Discard) // net/http logs some of what it receives
	defer log.SetOutput(os.Stderr)
	before := hostile.Goroutines()
	turns := make(chan struct{}, 16)
	var all sync.WaitGroup
	for _, receiver := range hostile.Receivers(t) {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			// On a busy machine, the deadline may pass before anything happens, or
			// while the client of HTTP/2 replaces connections, of which it may then
			// keep one.
			timeout := time.Second
			for !deliverTo(t, receiver, timeout) && timeout < hostile.Limit/2 {
				timeout *= 2
			}
		})
	}
	all.Wait()
	if err := before.Await(); err != nil {
		t.Error(err)
	}
}

// deliverTo reports whether the deadline sufficed to meet what is under test.
func deliverTo(t *testing.T, receiver hostile.Receiver, timeout time.Duration) bool {
	server := receiver.Start(t)
	policy := egress.Development()
	policy.RootCAs = receiver.Roots
	client, err := policy.Client(nil)
	if err != nil {
		t.Error(err)
		return true
	}
	configurations := store.NewMemory()
	if err := configurations.Apply(t.Context(), webhookcfg.Set("acme", webhookcfg.All(), egress.NewURL(server.URL))); err != nil {
		t.Error(err)
		return true
	}
	returned := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), timeout)
		defer cancel()
		returned <- sender{configurations, client, "key", time.Now}.send(ctx, "acme", "e1", []byte("{}"))
	}()
	err, late := hostile.Result(returned)
	if late != nil {
		t.Errorf("%s: %v", receiver.Name, late)
	}
	if err := server.AwaitClosed(client.CloseIdleConnections); err != nil {
		t.Errorf("%s: %v", receiver.Name, err)
	}
	server.Close()
	if text := fmt.Sprint(err); err == nil && !receiver.Responds || strings.Contains(text, "secret") || strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("%s: error %q", receiver.Name, text)
	}
	return server.Reached() > 0
}
