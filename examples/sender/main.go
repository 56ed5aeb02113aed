// Command sender delivers one notification to the webhook in effect. The receiver is part of
// the program: it listens on loopback and verifies the signature. In your service, a queue
// has the client, the entity and the message of each notification.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, out io.Writer) error {
	keys, err := deliver.DerivedKeys([]byte("thirty-two random bytes or more, from a vault"))
	if err != nil {
		return err
	}
	ofAcme, err := keys.Keys(ctx, deliver.Recipient{Client: "acme"})
	if err != nil {
		return err
	}
	receiver := httptest.NewServer(receive(ofAcme[0].Reveal(), out))
	defer receiver.Close()
	configurations := store.NewMemory()
	change := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL+"/in?token=t0ken"))
	if err := configurations.Apply(ctx, change); err != nil {
		return err
	}

	// Development allows http and loopback. In your service, use the policy of the handler.
	sender, err := deliver.New(configurations, keys, &deliver.Options{Policy: egress.Development()})
	if err != nil {
		return err
	}
	defer sender.CloseIdleConnections()
	message := deliver.Message{ID: "msg_1", Body: []byte(`{"type":"module.updated","version":7}`)}
	result := sender.Send(ctx, "acme", "e1", message)
	fmt.Fprintln(out, result.Outcome, "to", result.Webhook.URL)
	return result.Err
}

// receive returns the handler of the receiver. Secret is the text of the key, which a real
// receiver has in its settings. A real one should verify with a Standard Webhooks library,
// which also refuses old requests, and ignore messages with an ID that it has seen.
func receive(secret string, out io.Writer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, bodyErr := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		key, keyErr := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body)
		want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
		signatures := strings.Fields(r.Header.Get("Webhook-Signature")) // one per key during a rotation
		if bodyErr != nil || keyErr != nil || !slices.Contains(signatures, want) {
			http.Error(w, "invalid signature", http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(out, "received at %s: %s\n", r.URL.Path, body)
	})
}
