// Command sender delivers one notification to the webhook that is in effect: it
// resolves the webhook, signs the body according to the Standard Webhooks
// specification, and sends it with the client of an egress policy. The receiver is
// part of the program and listens on loopback.
package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	key := signingKey(rand.Text())
	receiver := httptest.NewServer(receive(key, out))
	defer receiver.Close()

	configurations := store.NewMemory()
	change := webhookcfg.Set("acme", webhookcfg.All(), egress.NewURL(receiver.URL+"/in?token=t0ken"))
	if err := configurations.Apply(ctx, change); err != nil {
		return err
	}
	// Development allows http and loopback. A service sends with the policy of its
	// handler; without one that is new(egress.Policy).
	client, err := egress.Development().Client(nil)
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	s := sender{configurations, client, key, time.Now}
	return s.send(ctx, "acme", "e1", []byte(`{"type":"module.updated"}`))
}

// sender delivers the notifications of a service.
type sender struct {
	configurations webhookcfg.Store
	client         *http.Client // of an [egress.Policy]
	key            signingKey
	now            func() time.Time
}

// send delivers body to the webhook of an entity. It returns nil if there is none. The
// context, or the timeout of the client, bounds the time this takes, whatever the receiver
// does.
func (s sender) send(ctx context.Context, client, entity string, body []byte) error {
	hook, err := s.configurations.Resolve(ctx, client, entity)
	if err != nil || hook.URL.IsZero() {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, hook.URL.Reveal(), bytes.NewReader(body))
	if err != nil {
		return egress.RedactError(err)
	}
	id, at := "msg_"+rand.Text(), s.now()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	r.Header.Set("Webhook-Signature", s.key.sign(id, at, body))
	resp, err := s.client.Do(r)
	if err != nil {
		return egress.RedactError(err)
	}
	if _, _, err := egress.ReadBody(resp, 4<<10); err != nil {
		return err
	}
	if resp.StatusCode/100 != 2 {
		// resp.Status has the receiver's own text, which may contain anything.
		return fmt.Errorf("%v responded with status %d", hook.URL, resp.StatusCode)
	}
	return nil
}

// signingKey is the secret that sender and receiver share.
type signingKey string

// sign returns the value of the Webhook-Signature header.
func (k signingKey) sign(id string, at time.Time, body []byte) string {
	mac := hmac.New(sha256.New, []byte(k))
	fmt.Fprintf(mac, "%s.%d.%s", id, at.Unix(), body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

var errSignature = errors.New("sender: invalid or expired signature")

// verify returns errSignature unless the body was signed with the key in the last five
// minutes.
func (k signingKey) verify(h http.Header, body []byte, now time.Time) error {
	seconds, err := strconv.ParseInt(h.Get("Webhook-Timestamp"), 10, 64)
	at := time.Unix(seconds, 0)
	want := k.sign(h.Get("Webhook-Id"), at, body)
	if err != nil || now.Sub(at).Abs() > 5*time.Minute || !hmac.Equal([]byte(want), []byte(h.Get("Webhook-Signature"))) {
		return errSignature
	}
	return nil
}

// receive returns the handler of the receiver.
func receive(key signingKey, out io.Writer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err == nil {
			err = key.verify(r.Header, body, time.Now())
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		fmt.Fprintf(out, "received at %s: %s\n", r.URL.Path, body)
	})
}
