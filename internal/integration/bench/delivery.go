package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

const deliveriesUnderWay = 16

// delivery compares Send with a bare client that signs its requests.
func delivery(s settings, r *report) error {
	r.section("Delivery", fmt.Sprintf(`CPU time of one delivery, with %d under way. It includes the receiver, which runs in the same
process. The reference is an http.Client with a pool of the same size. It signs with the
reference library of Standard Webhooks.`, deliveriesUnderWay))
	var pairs []pair
	for _, scheme := range []string{"http", "https"} {
		receiver := newReceiver(scheme)
		defer receiver.Close()
		send, err := receiver.sender(deliveriesUnderWay)
		if err != nil {
			return err
		}
		signed, err := receiver.signed()
		if err != nil {
			return err
		}
		pairs = append(pairs, pair{scheme, s.deliver(send), s.deliver(signed), 1.2})
	}
	many := s
	many.rounds *= 3 // each round is disturbed differently by scheduling and garbage collection, so take more of them
	many.measurePairs(r, pairs...)
	return nil
}

// deliver measures the CPU time of calls. It makes deliveriesUnderWay of them at a time.
func (s settings) deliver(call func(i int) error) side {
	return func() result {
		if _, _, err := callFor(s.turn/4, deliveriesUnderWay, call); err != nil {
			panic("bench: " + err.Error())
		}
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		start := cpuTime()
		n, _, err := callFor(s.turn, deliveriesUnderWay, call)
		used := cpuTime() - start
		runtime.ReadMemStats(&after)
		if err != nil {
			panic("bench: " + err.Error())
		}
		return result{float64(used.Nanoseconds()) / float64(n), int64(after.Mallocs-before.Mallocs) / n}
	}
}

// callFor makes calls in several goroutines for some time, and numbers them. It returns how
// many it made and how long they took.
func callFor(d time.Duration, goroutines int, call func(i int) error) (n int64, elapsed time.Duration, err error) {
	var next atomic.Int64
	var failure atomic.Pointer[error]
	var workers sync.WaitGroup
	start := time.Now()
	for range goroutines {
		workers.Go(func() {
			for failure.Load() == nil && time.Since(start) < d {
				if err := call(int(next.Add(1))); err != nil {
					failure.Store(&err)
				}
			}
		})
	}
	workers.Wait()
	if first := failure.Load(); first != nil {
		return 0, 0, *first
	}
	return next.Load(), time.Since(start), nil
}

// notification is the body of all deliveries.
var notification = []byte(`{"type":"module.updated","timestamp":"2026-01-02T03:04:05Z","data":{"endpoint_id":"5b7ad2c8","version":17}}`)

// receiver is a server that accepts notifications. You can reach it under any name.
type receiver struct {
	*httptest.Server
	policy *egress.Policy
}

func newReceiver(scheme string) *receiver {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	policy := egress.Development()
	if scheme == "http" {
		server.Start()
	} else {
		server.StartTLS()
		policy.RootCAs = server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	}
	policy.Resolver = loopbackResolver{}
	return &receiver{server, policy}
}

// loopbackResolver resolves every name to loopback.
type loopbackResolver struct{}

func (loopbackResolver) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
}

// url returns a URL that the server's certificate is valid for.
func (r *receiver) url() string {
	scheme := "http"
	if r.policy.RootCAs != nil {
		scheme = "https"
	}
	_, port, _ := net.SplitHostPort(r.Listener.Addr().String())
	return fmt.Sprintf("%s://hooks.example.com:%s/in?token=t0ken", scheme, port)
}

// bare returns a client with the same pool as an egress client.
func (r *receiver) bare() *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, r.Listener.Addr().String())
		},
		TLSClientConfig:     &tls.Config{RootCAs: r.policy.RootCAs},
		MaxIdleConns:        1000,
		MaxIdleConnsPerHost: deliveriesUnderWay,
		DisableCompression:  true,
	}}
}

// signed returns a function that signs and posts the notification with a bare client.
func (r *receiver) signed() (func(int) error, error) { return signedPosts(r.bare(), r.url()) }

// signedPosts returns a function that signs the notification with the reference library and
// posts it to a URL.
func signedPosts(client *http.Client, url string) (func(int) error, error) {
	reference, err := standardwebhooks.NewWebhook(deliver.GenerateKey().Reveal())
	if err != nil {
		return nil, err
	}
	return func(i int) error {
		req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(notification))
		if err != nil {
			return err
		}
		id, now := messageID(i), time.Now()
		signature, err := reference.Sign(id, now, notification)
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Webhook-Id", id)
		req.Header.Set("Webhook-Timestamp", strconv.FormatInt(now.Unix(), 10))
		req.Header.Set("Webhook-Signature", signature)
		return drain(client.Do(req))
	}, nil
}

func messageID(i int) string { return "msg_" + strconv.Itoa(i) }

// drain reads a response, and returns an error if it isn't a success.
func drain(resp *http.Response, err error) error {
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusNoContent {
		err = errors.New(resp.Status)
	}
	_, copied := io.Copy(io.Discard, resp.Body)
	return errors.Join(err, copied, resp.Body.Close())
}

// oneKey gives all clients the same key.
type oneKey []deliver.Key

func (k oneKey) Keys(context.Context, deliver.Recipient) ([]deliver.Key, error) { return k, nil }

// sender returns a function that sends the notification. Its limits allow underWay calls at a
// time.
func (r *receiver) sender(underWay int) (func(int) error, error) {
	st := store.NewMemory()
	if err := st.Apply(context.Background(), webhookcfg.SetChange(clientID, webhookcfg.All(), egress.NewURL(r.url()))); err != nil {
		return nil, err
	}
	opts := &deliver.Options{
		Policy:    r.policy,
		Transport: egress.TransportOptions{MaxIdleConnsPerHost: underWay},
		PerClient: underWay,
		PerHost:   underWay,
	}
	s, err := deliver.New(st, oneKey{deliver.GenerateKey()}, opts)
	if err != nil {
		return nil, err
	}
	return func(i int) error {
		r := s.Send(context.Background(), clientID, "e1", deliver.Message{ID: messageID(i), Body: notification})
		if r.Outcome != deliver.Delivered {
			return fmt.Errorf("%v, %v: %w", r.Outcome, r.Reason, r.Err)
		}
		return nil
	}, nil
}
