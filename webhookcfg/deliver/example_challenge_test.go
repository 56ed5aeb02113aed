package deliver_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// signature is what the function sign of a Standard Webhooks library returns.
func signature(secret string, header http.Header, payload []byte) string {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		log.Fatal(err)
	}
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", header.Get("Webhook-Id"), header.Get("Webhook-Timestamp"), payload)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// The receiver has the key of one client, and only agrees to that client's notifications.
func ExampleChallenge() {
	ctx := context.Background()
	keys, err := deliver.DerivedKeys([]byte("thirty-two random bytes or more, from a vault"))
	if err != nil {
		log.Fatal(err)
	}
	ofAcme, err := keys.Keys(ctx, deliver.Recipient{Client: "acme"})
	if err != nil {
		log.Fatal(err)
	}
	secret := ofAcme[0].Reveal()
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
		if err != nil || r.Header.Get("Webhook-Signature") != signature(secret, r.Header, body) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		var event struct{ Type, Challenge string }
		if json.Unmarshal(body, &event) == nil && event.Type == "webhook.challenge" {
			_, _ = io.WriteString(w, signature(secret, r.Header, []byte(event.Challenge)))
		}
	}))
	defer receiver.Close()

	// In your service, use the handler's policy, and pass the prober as
	// webhookcfg.Options.Prober.
	challenge, err := deliver.Challenge(keys)
	if err != nil {
		log.Fatal(err)
	}
	prober, err := egress.Development().Prober(&egress.ProberOptions{HTTPProbe: challenge})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("acme agrees:", prober.Probe(ctx, "acme", egress.NewURL(receiver.URL)) == nil)
	fmt.Println("globex agrees:", prober.Probe(ctx, "globex", egress.NewURL(receiver.URL)) == nil)
	// Output:
	// acme agrees: true
	// globex agrees: false
}
