package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
	strict, err := (&egress.Policy{AllowHTTP: true}).Client()
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
