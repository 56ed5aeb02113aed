package egress_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hostile"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// sender is one of the ways in which this package connects to a receiver.
type sender struct {
	name string

	// start returns two functions: one sends a body and ends within the timeout, the other
	// closes idle connections.
	start func(t *testing.T, policy *egress.Policy, timeout time.Duration) (send sendFunc, closeIdle func())
}

type sendFunc func(ctx context.Context, url string, body []byte) error

var senders = []sender{
	probing("connect probe", nil),
	probing("AnyResponse", must(egress.AnyResponse(http.MethodPost))),
	probing("Handshake", must(egress.Handshake("sender.example.com"))),
	probing("HTTPProbe that reads all", func(ctx context.Context, _ string, client *http.Client, target egress.URL) error {
		return post(ctx, client, target.Reveal(), nil, readAll)
	}),
	probing("HTTPProbe that ignores its context", func(_ context.Context, _ string, client *http.Client, target egress.URL) error {
		return post(context.Background(), client, target.Reveal(), nil, readAll)
	}),
	{"Client with a deadline", func(t *testing.T, policy *egress.Policy, timeout time.Duration) (sendFunc, func()) {
		client := newClient(t, policy)
		return func(ctx context.Context, url string, body []byte) error {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			return post(ctx, client, url, body, readSome)
		}, client.CloseIdleConnections
	}},
	{"Client with its own timeout", func(t *testing.T, policy *egress.Policy, timeout time.Duration) (sendFunc, func()) {
		client := newClient(t, policy)
		client.Timeout = timeout
		return func(ctx context.Context, url string, body []byte) error {
			return post(ctx, client, url, body, readAll)
		}, client.CloseIdleConnections
	}},
	{"Transport", func(t *testing.T, policy *egress.Policy, timeout time.Duration) (sendFunc, func()) {
		transport := newTransport(t, policy)
		return func(ctx context.Context, url string, body []byte) error {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			return post(ctx, &http.Client{Transport: transport}, url, body, readAll)
		}, transport.CloseIdleConnections
	}},
}

// probing returns a sender that probes.
func probing(name string, httpProbe egress.HTTPProbe) sender {
	return sender{name, func(t *testing.T, policy *egress.Policy, timeout time.Duration) (sendFunc, func()) {
		opts := &egress.ProberOptions{HTTPProbe: httpProbe, Timeout: timeout, MaxProbes: 1}
		prober := newProber(t, policy, opts)
		return func(ctx context.Context, url string, _ []byte) error {
			return prober.Probe(ctx, "client", egress.NewURL(url))
		}, func() {}
	}}
}

// TestHostileReceivers: no matter what a receiver does, calls, connections, goroutines and
// the slots of probes end with the deadline, and no error contains anything that was
// received.
func TestHostileReceivers(t *testing.T) {
	hostile.BoundLog(t)
	before := hostile.Goroutines()
	turns := make(chan struct{}, 16)
	var all sync.WaitGroup
	for r, receiver := range hostile.Receivers(t) {
		for s, sender := range senders {
			if !*full && (r+s)%4 > 0 {
				continue
			}
			all.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				// On a busy machine, the deadline may pass before anything happens.
				timeout := 50 * time.Millisecond
				if receiver.BodySize > 1<<20 {
					timeout = 500 * time.Millisecond
				}
				for !sendToHostile(t, sender, receiver, timeout) && timeout < hostile.Limit/2 {
					timeout *= 2
				}
			})
		}
	}
	all.Wait()
	if err := before.Await(); err != nil {
		t.Error(err)
	}
}

// sendToHostile reports whether there was enough time to get to the hostile part.
func sendToHostile(t *testing.T, sender sender, receiver hostile.Receiver, timeout time.Duration) bool {
	policy := egress.Development()
	policy.RootCAs = receiver.Roots
	server := receiver.Start(t)
	send, closeIdle := sender.start(t, policy, timeout)
	body := make([]byte, receiver.BodySize)
	returned := make(chan error, 1)
	go func() { returned <- send(t.Context(), server.URL, body) }()
	err, late := hostile.Result(returned, timeout)
	if late != nil {
		t.Errorf("%s, %s: %v", receiver.Name, sender.name, late)
	}
	if err := server.AwaitClosed(closeIdle); err != nil {
		t.Errorf("%s, %s: %v", receiver.Name, sender.name, err)
	}
	server.Close()
	if _, limited := errors.AsType[*egress.LimitError](send(t.Context(), server.URL, nil)); limited {
		t.Errorf("%s, %s: the slot of the probe is left occupied", receiver.Name, sender.name)
	}
	if text := fmt.Sprint(egress.RedactError(err)); strings.Contains(text, "secret") {
		t.Errorf("%s, %s: the error %q has the text of the receiver", receiver.Name, sender.name, text)
	}
	connects := receiver.Connects && sender.name == "connect probe"
	if err == nil && !receiver.Responds && !connects {
		t.Errorf("%s, %s: no error", receiver.Name, sender.name)
	}
	return connects || server.Reached() > 0
}
