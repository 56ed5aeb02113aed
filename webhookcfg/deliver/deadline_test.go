package deliver_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// The tests of this file run in bubbles of package synctest, over connections in memory:
// time passes only while everything waits, so that a time limit is exact, and a goroutine
// that is left makes the test fail.

// dialFunc is [egress.Policy.Dial].
type dialFunc func(ctx context.Context, network, address string) (net.Conn, error)

// dialTo returns a dialFunc for connections in memory to a receiver.
func dialTo(serve func(conn net.Conn)) dialFunc {
	return func(context.Context, string, string) (net.Conn, error) {
		sender, receiver := net.Pipe()
		go func() {
			defer func() { _ = receiver.Close() }()
			serve(receiver)
		}()
		return sender, nil
	}
}

// policyInMemory returns a policy under which example.com is called through dial.
func policyInMemory(dial dialFunc) *egress.Policy {
	return &egress.Policy{
		AllowHTTP:  true,
		Resolver:   names{"example.com": {netip.MustParseAddr("93.184.216.34")}},
		LocalAddrs: func(context.Context) ([]netip.Addr, error) { return nil, nil },
		Dial:       dial,
	}
}

// afterRequest returns a receiver that calls respond after each request.
func afterRequest(respond func(conn net.Conn)) func(conn net.Conn) {
	return func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			respond(conn)
		}
	}
}

// untilClosed reads until the other side closes the connection.
func untilClosed(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) }

// TestBody: a receiver does not hold an attempt with the body of its response.
func TestBody(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\n"
	for _, tt := range []struct {
		name        string
		respond     func(conn net.Conn)
		duration    time.Duration
		connections int // for two messages
	}{
		{"no body", func(conn net.Conn) { fmt.Fprint(conn, head+"Content-Length: 0\r\n\r\n") }, 0, 1},
		{"short", func(conn net.Conn) { fmt.Fprint(conn, head+"Content-Length: 2\r\n\r\nok") }, 0, 1},
		{"as long as allowed", func(conn net.Conn) {
			fmt.Fprint(conn, head+"Content-Length: 4096\r\n\r\n"+strings.Repeat("x", 4096))
		}, 0, 1},
		{"as long as allowed, in chunks", func(conn net.Conn) {
			fmt.Fprint(conn, head+"Transfer-Encoding: chunked\r\n\r\n1000\r\n"+strings.Repeat("x", 4096)+"\r\n")
			fmt.Fprint(conn, "0\r\n\r\n")
		}, 0, 1},
		{"too long", func(conn net.Conn) {
			fmt.Fprint(conn, head+"Content-Length: 1000000\r\n\r\n"+strings.Repeat("x", 10_000))
			untilClosed(conn)
		}, 0, 2},
		{"endless chunks", func(conn net.Conn) {
			fmt.Fprint(conn, head+"Transfer-Encoding: chunked\r\n\r\n"+strings.Repeat("2\r\nxx\r\n", 5_000))
			untilClosed(conn)
		}, 0, 2},
		{"a moment later", func(conn net.Conn) {
			fmt.Fprint(conn, head+"Content-Length: 2\r\n\r\n")
			time.Sleep(200 * time.Millisecond)
			fmt.Fprint(conn, "ok")
		}, 200 * time.Millisecond, 1},
		{"missing", func(conn net.Conn) {
			fmt.Fprint(conn, head+"Content-Length: 2\r\n\r\n")
			untilClosed(conn)
		}, 250 * time.Millisecond, 2},
		{"dripping", func(conn net.Conn) {
			_, err := fmt.Fprint(conn, head+"Content-Length: 1000000\r\n\r\n")
			for err == nil {
				time.Sleep(10 * time.Millisecond)
				_, err = fmt.Fprint(conn, "x")
			}
		}, 250 * time.Millisecond, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dialled := 0
				receive := dialTo(afterRequest(tt.respond))
				s := newSender(t, configured(t, "http://example.com"+secretPath), keyring{deliver.GenerateKey()}, &deliver.Options{
					Policy: policyInMemory(func(ctx context.Context, network, address string) (net.Conn, error) {
						dialled++
						return receive(ctx, network, address)
					}),
				})
				defer s.CloseIdleConnections()
				for range 2 {
					r := s.Send(t.Context(), "acme", "e1", message)
					check(t, tt.name, r, deliver.Delivered, "")
					if r.Duration != tt.duration {
						t.Errorf("took %v, want %v", r.Duration, tt.duration)
					}
					synctest.Wait() // the connection is idle, or closed
				}
				if dialled != tt.connections {
					t.Errorf("%d connections for two messages, want %d", dialled, tt.connections)
				}
				time.Sleep(time.Second) // the receiver notices that its connection is closed
			})
		})
	}
}

// step is a step of an attempt that takes until it is abandoned.
type step struct {
	name     string
	url      string
	webhooks deliver.Resolver
	keys     deliver.Keys
	dial     dialFunc
	lookup   egress.Resolver
	ofHost   bool // the host is to blame and not the receiver
}

func steps() []step {
	blocked := func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	}
	const url = "http://example.com" + secretPath
	keys := keyring{deliver.GenerateKey()}
	return []step{
		{name: "keys", url: url, ofHost: true, keys: keysFunc(func(ctx context.Context, _ deliver.Recipient) ([]deliver.Key, error) { return nil, blocked(ctx) })},
		{name: "lookup of the name", url: url, keys: keys, lookup: lookupFunc(blocked)},
		{name: "connect", url: url, keys: keys, dial: func(ctx context.Context, _, _ string) (net.Conn, error) { return nil, blocked(ctx) }},
		{name: "handshake", url: "https://example.com" + secretPath, keys: keys, dial: dialTo(untilClosed)},
		{name: "request", url: url, keys: keys, dial: dialTo(func(conn net.Conn) {
			_, err := conn.Read(make([]byte, 1))
			for err == nil { // reads no more
				time.Sleep(10 * time.Millisecond)
				_, err = conn.Write([]byte("H"))
			}
		})},
		{name: "header", url: url, keys: keys, dial: dialTo(untilClosed)},
		{name: "rest of the header", url: url, keys: keys, dial: dialTo(afterRequest(func(conn net.Conn) {
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\n")
			untilClosed(conn)
		}))},
	}
}

// lookupFunc is a function that is the Resolver of a policy.
type lookupFunc func(ctx context.Context) error

func (f lookupFunc) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	return nil, f(ctx)
}

func (step step) sender(t *testing.T, timeout time.Duration) *deliver.Sender {
	guarded := policyInMemory(step.dial)
	if step.lookup != nil {
		guarded.Resolver = step.lookup
	}
	webhooks := step.webhooks
	if webhooks == nil {
		webhooks = configured(t, step.url)
	}
	return newSender(t, webhooks, step.keys, &deliver.Options{Policy: guarded, Timeout: timeout})
}

// TestTimeout: an attempt ends with the time limit of the sender at whatever step it is,
// and the receiver has failed, unless the keys took that long.
func TestTimeout(t *testing.T) {
	const timeout = 3 * time.Second
	for _, step := range steps() {
		t.Run(step.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := step.sender(t, timeout).Send(t.Context(), "acme", "e1", message)
				if step.ofHost {
					check(t, step.name, r, deliver.Deferred, deliver.ReasonUnavailable)
				} else {
					check(t, step.name, r, deliver.Failed, reasonTimeout)
				}
				if r.Duration != timeout {
					t.Errorf("took %v", r.Duration)
				}
				time.Sleep(time.Second) // the receiver notices that its connection is closed
			})
		})
	}
}

// TestDefaultTimeout: by default an attempt takes 15 seconds at most.
func TestDefaultTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSender(t, configured(t, "http://example.com"+secretPath), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: policyInMemory(dialTo(untilClosed))})
		if r := s.Send(t.Context(), "acme", "e1", message); r.Duration != 15*time.Second {
			t.Errorf("took %v", r.Duration)
		}
	})
}

// TestCallerGivesUp: if the context of the caller ends, at whatever step, so does the
// attempt. The receiver has failed only if it had until the deadline.
func TestCallerGivesUp(t *testing.T) {
	const after = time.Second
	contexts := map[string]func(t *testing.T) (context.Context, context.CancelFunc){
		"cancelled": func(t *testing.T) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(after, cancel)
			return ctx, cancel
		},
		"deadline": func(t *testing.T) (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), after)
		},
	}
	all := append(steps(), step{name: "webhook", ofHost: true, keys: keyring{deliver.GenerateKey()}, webhooks: resolver(func(ctx context.Context, _, _ string) (webhookcfg.Webhook, error) {
		<-ctx.Done()
		return webhookcfg.Webhook{}, ctx.Err()
	})})
	for name, start := range contexts {
		for _, step := range all {
			// A time limit that is the same makes no difference.
			for _, timeout := range []time.Duration{after, 30 * time.Second} {
				t.Run(fmt.Sprint(name, " at ", step.name, " of ", timeout), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						ctx, cancel := start(t)
						defer cancel()
						r := step.sender(t, timeout).Send(ctx, "acme", "e1", message)
						time.Sleep(time.Second) // the receiver notices that its connection is closed
						if name == "cancelled" && timeout == after {
							return // which of the two is first is a matter of luck
						}
						if r.Duration != after {
							t.Errorf("took %v", r.Duration)
						}
						if name == "deadline" && !step.ofHost {
							check(t, step.name, r, deliver.Failed, reasonTimeout)
							return
						}
						check(t, step.name, r, deliver.Deferred, deliver.ReasonUnavailable)
						if r.Wait < time.Second || ctx.Err() == nil || !errors.Is(r.Err, ctx.Err()) {
							t.Errorf("wait %v, error %v", r.Wait, r.Err)
						}
					})
				})
			}
		}
	}
}

// TestDeadlineOfTest: at whatever step the receiver is, a test with less time than a delivery is
// given up, and one with as much has failed. If the keys take that long, the error isn't about the
// receiver.
func TestDeadlineOfTest(t *testing.T) {
	const after = time.Second
	for _, step := range steps() {
		for _, timeout := range []time.Duration{after, 30 * time.Second} {
			t.Run(fmt.Sprint(step.name, " of ", timeout), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), after)
					defer cancel()
					r := step.sender(t, timeout).Test(ctx, "acme", "", message)
					time.Sleep(time.Second) // the receiver notices that its connection is closed
					outcome, reason := deliver.Failed, deliver.ReasonUnreachable
					if step.ofHost || timeout > after {
						outcome, reason = deliver.Deferred, deliver.ReasonUnavailable
					}
					unreachable, isUnreachable := errors.AsType[*egress.UnreachableError](r.Err)
					if r.Outcome != outcome || r.Reason != reason || isUnreachable == step.ofHost || isUnreachable && !unreachable.Timeout() {
						t.Errorf("%v, reason %q, error %v", r.Outcome, r.Reason, r.Err)
					}
					if r.Duration != after || !errors.Is(r.Err, context.DeadlineExceeded) {
						t.Errorf("took %v, error %v", r.Duration, r.Err)
					}
					checkHidden(t, r, "t0ken", "s3cret")
				})
			})
		}
	}
}

// TestCallerGaveUp: with a context that has ended, nothing is sent.
func TestCallerGaveUp(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now())
	defer cancel()
	r := newReceiver(t, false, status(200))
	st := configured(t, r.URL+secretPath)
	careless := resolver(func(_ context.Context, client, entity string) (webhookcfg.Webhook, error) {
		return st.Resolve(t.Context(), client, entity)
	})
	for _, ctx := range []context.Context{cancelled, late} {
		for _, webhooks := range []deliver.Resolver{st, careless} {
			result := newSender(t, webhooks, keyring{deliver.GenerateKey()}, nil).Send(ctx, "acme", "e1", message)
			check(t, ctx.Err().Error(), result, deliver.Deferred, deliver.ReasonUnavailable)
		}
	}
	if len(r.received()) > 0 {
		t.Error("a request was sent")
	}
}

// TestCallerGivesUpOnBody: the status has arrived, and counts.
func TestCallerGivesUpOnBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSender(t, configured(t, "http://example.com"+secretPath), keyring{deliver.GenerateKey()}, &deliver.Options{
			Policy: policyInMemory(dialTo(afterRequest(func(conn net.Conn) {
				fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
				untilClosed(conn)
			}))),
		})
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		r := s.Send(ctx, "acme", "e1", message)
		check(t, "body", r, deliver.Delivered, "")
		if r.Duration != 100*time.Millisecond {
			t.Errorf("took %v", r.Duration)
		}
	})
}
