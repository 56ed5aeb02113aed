package deliver_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestAllocations: where there is no webhook, as for most entities of most services, an
// attempt costs hardly more than the lookup.
func TestAllocations(t *testing.T) {
	st := store.NewMemory()
	s := newSender(t, st, keyring{deliver.GenerateKey()}, nil)
	lookup := testing.AllocsPerRun(100, func() { _, _ = st.Resolve(t.Context(), "acme", "e1") })
	attempt := testing.AllocsPerRun(100, func() { s.Send(t.Context(), "acme", "e1", message) })
	if attempt > lookup+1 {
		t.Errorf("%v allocations, of which %v are those of the lookup", attempt, lookup)
	}
}

func BenchmarkNoWebhook(b *testing.B) {
	st := store.NewMemory()
	b.Run("Send", func(b *testing.B) {
		s := newSender(b, st, keyring{deliver.GenerateKey()}, nil)
		b.ReportAllocs()
		for b.Loop() {
			s.Send(b.Context(), "acme", "e1", message)
		}
	})
	b.Run("Resolve", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = st.Resolve(b.Context(), "acme", "e1")
		}
	})
}

// BenchmarkSend compares Send with a bare client that signs, to a receiver in the same
// process.
func BenchmarkSend(b *testing.B) {
	body := bytes.Repeat([]byte("x"), 500)
	for _, tls := range []bool{false, true} {
		r := newReceiver(b, tls, status(204))
		key := deliver.GenerateKey()
		s := newSender(b, configured(b, r.URL), keyring{key}, &deliver.Options{Policy: policy(r)})
		b.Run(fmt.Sprintf("TLS=%v/Send", tls), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if result := s.Send(b.Context(), "acme", "e1", deliver.Message{ID: "msg_1", Body: body}); result.Err != nil {
					b.Fatal(result.Err)
				}
			}
		})
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 16
		if tls {
			transport.TLSClientConfig = r.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
		}
		client := &http.Client{Transport: transport, Timeout: 15 * time.Second}
		b.Run(fmt.Sprintf("TLS=%v/http.Client", tls), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := sendBare(client, r.URL, "msg_1", body, key); err != nil {
					b.Fatal(err)
				}
			}
		})
		transport.CloseIdleConnections()
	}
}

// sendBare does what an attempt does with the standard library alone.
func sendBare(client *http.Client, url, id string, body []byte, key deliver.Key) error {
	req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	at := time.Now().Unix()
	secret, err := base64.StdEncoding.DecodeString(key.Reveal()[len("whsec_"):])
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%d.%s", id, at, body)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Webhook-Id", id)
	req.Header.Set("Webhook-Timestamp", fmt.Sprint(at))
	req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.Body.Close()
}
