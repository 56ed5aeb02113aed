package deliver_test

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
	"slices"
	"strings"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// job is an entry in a queue. In your service, the queue should be durable.
type job struct {
	client, entity string
	message        deliver.Message
	attempt        int // from 1
}

// isSigned reports whether a request has a signature by a key, in a receiver that knows the text of
// the key from its settings. A real one should use a Standard Webhooks library, which also refuses
// old requests, and ignore messages with an ID that it has seen.
func isSigned(r *http.Request, key string) bool {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, 64<<10))
	secret, errKey := base64.StdEncoding.DecodeString(strings.TrimPrefix(key, "whsec_"))
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp"), body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	signatures := strings.Fields(r.Header.Get("Webhook-Signature")) // one per key during a rotation
	return err == nil && errKey == nil && slices.Contains(signatures, want)
}

// The receiver verifies what it gets, and is overloaded at first.
func ExampleSender_Send() {
	ctx := context.Background()
	keys, err := deliver.DerivedKeys([]byte("thirty-two random bytes or more, from a vault"))
	if err != nil {
		log.Fatal(err)
	}
	ofAcme, err := keys.Keys(ctx, deliver.Recipient{Client: "acme"})
	if err != nil {
		log.Fatal(err)
	}
	overloaded := true
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case !isSigned(r, ofAcme[0].Reveal()):
			w.WriteHeader(http.StatusUnauthorized)
		case overloaded:
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		overloaded = false
	}))
	defer receiver.Close()

	// The client has set one webhook for all its entities.
	webhooks := store.NewMemory()
	if err := webhooks.Apply(ctx, webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL))); err != nil {
		log.Fatal(err)
	}
	// In your service, use the handler's policy. This one allows http and loopback.
	sender, err := deliver.New(webhooks, keys, &deliver.Options{Policy: egress.Development()})
	if err != nil {
		log.Fatal(err)
	}
	defer sender.CloseIdleConnections()

	schedule := deliver.Schedule{time.Millisecond, time.Second} // in your service, use deliver.StandardSchedule()
	queue := []job{{"acme", "e1", deliver.Message{ID: "msg_1", Body: []byte(`{"version":7}`)}, 1}}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		result := sender.Send(ctx, next.client, next.entity, next.message)
		fmt.Println("attempt", next.attempt, result.Outcome, result.Reason, result.Status)
		switch decision := schedule.Next(next.attempt, result); decision.Action {
		case deliver.Done: // acknowledge it
		case deliver.Retry:
			time.Sleep(decision.Delay) // a queue makes it due later
			next.attempt = decision.Attempt
			queue = append(queue, next)
		case deliver.SetAside: // keep it, so that it can be replayed
		}
	}
	// Output:
	// attempt 1 failed throttled 503
	// attempt 2 delivered  200
}
