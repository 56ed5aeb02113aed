package deliver_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
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

// The receiver is overloaded at first.
func ExampleSender_Send() {
	overloaded := true
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if overloaded {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		overloaded = false
	}))
	defer receiver.Close()

	// The client has set one webhook for all its entities.
	ctx := context.Background()
	webhooks := store.NewMemory()
	if err := webhooks.Apply(ctx, webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(receiver.URL))); err != nil {
		log.Fatal(err)
	}
	keys, err := deliver.DerivedKeys([]byte("thirty-two random bytes or more, from a vault"))
	if err != nil {
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
