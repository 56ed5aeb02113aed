package deliver_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// inbox is a receiver in a bubble that takes a time for each request. Its responses are "200
// OK\r\n", unless respond returns others.
type inbox struct {
	takes   time.Duration
	respond func(n int) string // n counts the requests

	mu       sync.Mutex
	requests []*http.Request
	bodies   []string
}

// policy returns a policy under which every name is called at the inbox.
func (in *inbox) policy() *egress.Policy {
	p := policyInMemory(dialTo(func(conn net.Conn) {
		reader := bufio.NewReader(conn)
		for {
			req, err := http.ReadRequest(reader)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(req.Body)
			in.mu.Lock()
			in.requests, in.bodies = append(in.requests, req), append(in.bodies, string(body))
			n := len(in.requests)
			in.mu.Unlock()
			time.Sleep(in.takes)
			response := "200 OK\r\n"
			if in.respond != nil {
				response = in.respond(n)
			}
			fmt.Fprint(conn, "HTTP/1.1 "+response+"Content-Length: 0\r\n\r\n")
		}
	}))
	addr := []netip.Addr{netip.MustParseAddr("93.184.216.34")}
	p.Resolver = names{"example.com": addr, "example.org": addr}
	return p
}

// ids returns the identifiers of the messages in the order in which they arrived.
func (in *inbox) ids() (ids []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, r := range in.requests {
		ids = append(ids, r.Header.Get("Webhook-Id"))
	}
	return ids
}

// sends collects the results of concurrent calls of Send.
type sends struct {
	sender  *deliver.Sender
	wg      sync.WaitGroup
	mu      sync.Mutex
	results map[string]deliver.Result
}

// start starts a Send, and returns when it waits for something.
func (s *sends) start(ctx context.Context, entity, id string) {
	s.wg.Go(func() {
		m := message
		m.ID = id
		r := s.sender.Send(ctx, "acme", entity, m)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.results == nil {
			s.results = map[string]deliver.Result{}
		}
		s.results[id] = r
	})
	synctest.Wait()
}

// wait returns the results, by the identifier of the message.
func (s *sends) wait() map[string]deliver.Result {
	s.wg.Wait()
	s.sender.CloseIdleConnections()
	return s.results
}

// TestPatience: attempts at a busy receiver wait for their slots, in the order in which they
// came, as many as can expect one in time. The others are deferred at once.
func TestPatience(t *testing.T) {
	for _, tt := range []struct {
		name      string
		patience  time.Duration
		delivered int // of 20, if each takes as long as the sender assumes
	}{
		{"default", 0, 13},
		{"patient", time.Second, 17},
		{"less", 50 * time.Millisecond, 3},
		{"never", -1, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := &inbox{takes: 20 * time.Millisecond}
				keys := keyring{deliver.GenerateKey()}
				opts := &deliver.Options{PerReceiver: 1, Patience: tt.patience, Policy: in.policy()}
				s := &sends{sender: newSender(t, configured(t, "http://example.com"+secretPath), keys, opts)}
				start := time.Now()
				var want []string
				for i := range 20 {
					s.start(t.Context(), "e", fmt.Sprint("m", i))
					want = append(want, fmt.Sprint("m", i))
				}
				results := s.wait()
				for i, id := range want {
					if i < tt.delivered {
						check(t, id, results[id], deliver.Delivered, "")
						continue
					}
					check(t, id, results[id], deliver.Deferred, deliver.ReasonBusy)
					if took := results[id].Duration; took != 0 {
						t.Errorf("%s was deferred after %v", id, took)
					}
				}
				if got := in.ids(); !slices.Equal(got, want[:tt.delivered]) {
					t.Errorf("sent %v", got)
				}
				if took := time.Since(start); took != time.Duration(tt.delivered)*in.takes {
					t.Errorf("took %v", took)
				}
			})
		})
	}
}

// TestPatienceOfClient: attempts wait for a slot of their client, too, up to six for each, as many
// as can expect one in time.
func TestPatienceOfClient(t *testing.T) {
	for _, tt := range []struct {
		patience time.Duration
		ids      []string // of those that were delivered, if each takes as long as the sender assumes
	}{
		{0, []string{"0", "1", "2", "3", "4", "5", "6"}},
		{50 * time.Millisecond, []string{"0", "1", "2"}},
		{-1, []string{"0"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			in, st := &inbox{takes: 20 * time.Millisecond}, store.NewMemory()
			for i := range 10 {
				url := egress.NewURL(fmt.Sprint("http://example.com:", 8000+i))
				hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity(fmt.Sprint(i)), url))
			}
			s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{PerClient: 1, Patience: tt.patience, Policy: in.policy()})}
			for i := range 10 {
				s.start(t.Context(), fmt.Sprint(i), fmt.Sprint(i))
			}
			for id, r := range s.wait() {
				if slices.Contains(tt.ids, id) {
					check(t, id, r, deliver.Delivered, "")
				} else if check(t, id, r, deliver.Deferred, deliver.ReasonBusy); r.Duration != 0 {
					t.Errorf("%s was deferred after %v", id, r.Duration)
				}
			}
			if got := in.ids(); !slices.Equal(got, tt.ids) {
				t.Errorf("patience %v: sent %v, want %v", tt.patience, got, tt.ids)
			}
		})
	}
}

// TestNoPatienceWhileHanging: while no response arrives for longer than the patience, nobody
// starts to wait for a slot of the receiver or of its client.
func TestNoPatienceWhileHanging(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, st := &inbox{takes: time.Second}, configured(t, "http://example.com")
		hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity("other"), egress.NewURL("http://example.org")))
		s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{PerClient: 2, PerReceiver: 1, Policy: in.policy()})}
		s.start(t.Context(), "e", "first")
		time.Sleep(300 * time.Millisecond)
		want := func(entity string) {
			t.Helper()
			r := s.sender.Send(t.Context(), "acme", entity, message)
			if check(t, entity, r, deliver.Deferred, deliver.ReasonBusy); r.Duration != 0 {
				t.Errorf("deferred after %v", r.Duration)
			}
		}
		want("e")
		s.start(t.Context(), "other", "second")
		time.Sleep(300 * time.Millisecond)
		hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity("third"), egress.NewURL("http://example.com:8080")))
		want("third")
		s.wait()
	})
}

// TestLeaves: of an attempt that gives up waiting nothing stays, and those that still wait for
// the same receiver share its slots with those that come later.
func TestLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, st := &inbox{takes: time.Second}, configured(t, "http://example.com")
		hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity("other"), egress.NewURL("http://example.org")))
		s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{
			PerClient: 1, Patience: time.Minute, Policy: in.policy(),
		})}
		waiting := func() (n int) {
			for r := range s.sender.Receivers() {
				if r.HostPort == "example.org:80" {
					n += 1 + r.Waiting // 0 if it is unknown
				}
			}
			return n
		}
		s.start(t.Context(), "e", "under_way")
		ctx, cancel := context.WithCancel(t.Context())
		s.start(ctx, "other", "leaves")
		s.start(t.Context(), "other", "stays")
		before := waiting()
		cancel()
		synctest.Wait()
		after := waiting()
		last, cancel := context.WithCancel(t.Context())
		s.start(last, "other", "leaves_too")
		later := waiting()
		cancel()
		if before != 3 || after != 2 || later != 3 {
			t.Errorf("%d, %d and %d wait", before-1, after-1, later-1)
		}
		for id, r := range s.wait() {
			if strings.HasPrefix(id, "leaves") {
				check(t, id, r, deliver.Deferred, deliver.ReasonUnavailable)
			} else {
				check(t, id, r, deliver.Delivered, "")
			}
		}

		s.start(t.Context(), "e", "again")
		ctx, cancel = context.WithCancel(t.Context())
		s.start(ctx, "other", "alone")
		cancel()
		synctest.Wait()
		if n := waiting(); n != 0 {
			t.Error("a receiver stays that nobody waits for")
		}
		s.wait()
	})
}

// TestPatienceOfReceivers: an attempt that waits for one receiver is not in front of those for
// another one.
func TestPatienceOfReceivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, st := &inbox{takes: 100 * time.Millisecond}, configured(t, "http://example.com")
		hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity("other"), egress.NewURL("http://example.org")))
		s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{
			PerClient: 3, PerReceiver: 2, Patience: time.Second, Policy: in.policy(),
		})}
		for _, id := range []string{"e1", "e2", "e3", "e4", "other1", "other2", "other3"} {
			s.start(t.Context(), strings.TrimRight(id, "1234"), id)
			time.Sleep(time.Millisecond)
		}
		for id, r := range s.wait() {
			check(t, id, r, deliver.Delivered, "")
		}
		// A slot of the client was free for other1 at once, and one for e3, as e1 had ended.
		if got, want := in.ids(), []string{"e1", "e2", "other1", "e3", "e4", "other2", "other3"}; !slices.Equal(got, want) {
			t.Errorf("sent %v, want %v", got, want)
		}
	})
}

// rotating has one key, which may be replaced at any time.
type rotating struct{ key atomic.Pointer[deliver.Key] }

func (r *rotating) rotate() { r.key.Store(new(deliver.GenerateKey())) }

func (r *rotating) Keys(context.Context, string) ([]deliver.Key, error) {
	return []deliver.Key{*r.key.Load()}, nil
}

// TestChangedWhileWaiting: what changes while an attempt waits for its slot applies to it.
func TestChangedWhileWaiting(t *testing.T) {
	literal := "http://93.184.216.34" + secretPath
	type service struct {
		store  *store.Memory
		health *deliver.Health
		keys   rotating
		local  atomic.Pointer[[]netip.Addr] // addresses of this machine
	}
	apply := func(change webhookcfg.Change) func(t *testing.T, s *service) {
		return func(t *testing.T, s *service) { hooktest.Apply(t, s.store, change) }
	}
	setTo := func(url string) func(t *testing.T, s *service) {
		return apply(hooktest.At(1, webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(url))))
	}
	tests := []struct {
		name    string
		change  func(t *testing.T, s *service)
		outcome deliver.Outcome
		reason  deliver.Reason
	}{
		{"nothing", func(*testing.T, *service) {}, deliver.Delivered, ""},
		{"unset", apply(webhookcfg.UnsetChange("acme", webhookcfg.All())), deliver.Undeliverable, deliver.ReasonNoWebhook},
		{"off", apply(webhookcfg.UnsetChange("acme", webhookcfg.Entity("e"))), deliver.Undeliverable, deliver.ReasonNoWebhook},
		{"set to another host", setTo("http://example.org" + secretPath), deliver.Deferred, deliver.ReasonBusy},
		{"set to another path", setTo(literal + "&more"), deliver.Deferred, deliver.ReasonBusy},
		{"set again", setTo(literal), deliver.Delivered, ""},
		{"rotated", func(_ *testing.T, s *service) { s.keys.rotate() }, deliver.Delivered, ""},
		{"stopped", func(t *testing.T, s *service) {
			hook, _ := s.store.Resolve(t.Context(), "acme", "e")
			s.health.Record(t.Context(), "acme", "e", deliver.Result{Outcome: deliver.Undeliverable, Reason: deliver.ReasonGone, Webhook: hook}, time.Now())
		}, deliver.Undeliverable, deliver.ReasonStopped},
		{"address of this machine", func(_ *testing.T, s *service) {
			s.local.Store(&[]netip.Addr{netip.MustParseAddr("93.184.216.34")})
		}, deliver.Undeliverable, deliver.ReasonPolicy},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := &inbox{takes: 200 * time.Millisecond}
				host := &service{store: store.NewMemory()}
				host.keys.rotate()
				hooktest.Apply(t, host.store, hooktest.At(0, webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(literal))))
				host.health, _ = deliver.NewHealth(nil, nil)
				host.local.Store(new([]netip.Addr))
				policy := in.policy()
				policy.LocalAddrs = func(context.Context) ([]netip.Addr, error) { return *host.local.Load(), nil }
				s := &sends{sender: newSender(t, host.store, &host.keys, &deliver.Options{
					PerReceiver: 1, Policy: policy, Timeout: 300 * time.Millisecond, Health: host.health,
				})}
				check(t, "before", s.sender.Send(t.Context(), "acme", "e", message), deliver.Delivered, "")
				time.Sleep(9700 * time.Millisecond) // the policy reads the addresses every ten seconds
				s.start(t.Context(), "e", "first")
				s.start(t.Context(), "e", "second")
				time.Sleep(100 * time.Millisecond)
				tt.change(t, host)
				time.Sleep(100 * time.Millisecond)
				at := time.Now()
				results := s.wait()
				check(t, "first", results["first"], deliver.Delivered, "")
				check(t, "second", results["second"], tt.outcome, tt.reason)
				requests := in.requests[1:]
				if hook, _ := host.store.Resolve(t.Context(), "acme", "e"); hooktest.Describe(results["second"].Webhook) != hooktest.Describe(hook) {
					t.Errorf("the result has the webhook %v", results["second"].Webhook)
				}
				if tt.outcome != deliver.Delivered {
					if len(requests) != 1 || results["second"].Duration != in.takes {
						t.Errorf("%d requests, took %v", len(requests), results["second"].Duration)
					}
					return
				}
				// Timestamp and time limit are those of the attempt.
				h := requests[1].Header
				if h.Get("Webhook-Timestamp") != strconv.FormatInt(at.Unix(), 10) || results["second"].Duration != 2*in.takes {
					t.Errorf("timestamp %s at %d, took %v", h.Get("Webhook-Timestamp"), at.Unix(), results["second"].Duration)
				}
				if !verify(request{header: h, body: []byte(in.bodies[2])}, *host.keys.key.Load()) {
					t.Error("signed with another key")
				}
			})
		})
	}
}

// TestDeferredWhileWaiting: a failure of the receiver, a pause, the end of the patience and of
// the context defer those who wait.
func TestDeferredWhileWaiting(t *testing.T) {
	tests := []struct {
		name     string
		takes    time.Duration
		response string
		cancel   time.Duration // zero: never
		reason   deliver.Reason
		wait     time.Duration // at least
		took     time.Duration
	}{
		{"failure", 100 * time.Millisecond, "500 Internal Server Error\r\n", 0, deliver.ReasonBusy, 0, 100 * time.Millisecond},
		{"gone", 100 * time.Millisecond, "410 Gone\r\n", 0, deliver.ReasonBusy, 0, 100 * time.Millisecond},
		{"pause", 100 * time.Millisecond, "503 Service Unavailable\r\nRetry-After: 60\r\n", 0, deliver.ReasonPaused, time.Minute, 100 * time.Millisecond},
		{"patience", 10 * time.Second, "200 OK\r\n", 0, deliver.ReasonBusy, 0, 250 * time.Millisecond},
		{"shutdown", 10 * time.Second, "200 OK\r\n", 150 * time.Millisecond, deliver.ReasonUnavailable, time.Second, 150 * time.Millisecond},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := &inbox{takes: tt.takes, respond: func(int) string { return tt.response }}
				s := &sends{sender: newSender(t, configured(t, "http://example.com"+secretPath), keyring{deliver.GenerateKey()}, &deliver.Options{
					PerReceiver: 1, Policy: in.policy(),
				})}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, cancel)
				}
				s.start(t.Context(), "e", "first")
				for i := range 3 {
					s.start(ctx, "e", fmt.Sprint(i))
				}
				results := s.wait()
				var waits []time.Duration
				for i := range 3 {
					r := results[fmt.Sprint(i)]
					waits = append(waits, r.Wait)
					check(t, tt.name, r, deliver.Deferred, tt.reason)
					if r.Duration != tt.took || r.Wait < tt.wait {
						t.Errorf("deferred after %v for %v, want after %v for %v", r.Duration, r.Wait, tt.took, tt.wait)
					}
				}
				slices.Sort(waits)
				if spread := waits[2] - waits[0]; tt.cancel == 0 && spread < 90*time.Millisecond {
					t.Errorf("deferred for %v, which is not how long the receiver takes", waits)
				}
				if len(in.requests) != 1 {
					t.Errorf("%d requests", len(in.requests))
				}
			})
		})
	}
}

// TestFailureOfAnotherReceiver: it defers nobody.
func TestFailureOfAnotherReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, st := &inbox{takes: 100 * time.Millisecond}, configured(t, "http://example.com")
		in.respond = func(n int) string {
			return []string{"500 Internal Server Error\r\n", "200 OK\r\n"}[min(n-1, 1)]
		}
		hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity("other"), egress.NewURL("http://example.org")))
		s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{PerReceiver: 1, Policy: in.policy()})}
		s.start(t.Context(), "e", "fails")
		time.Sleep(10 * time.Millisecond)
		for _, id := range []string{"other1", "other2"} {
			s.start(t.Context(), "other", id)
		}
		s.start(t.Context(), "e", "waits")
		results := s.wait()
		check(t, "fails", results["fails"], deliver.Failed, deliver.ReasonStatus)
		check(t, "waits", results["waits"], deliver.Deferred, deliver.ReasonBusy)
		check(t, "other", results["other1"], deliver.Delivered, "")
		check(t, "other", results["other2"], deliver.Delivered, "")
	})
}

// TestNoPatienceAfterFailure: an attempt never waits for a receiver whose last attempt failed.
func TestNoPatienceAfterFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{takes: 10 * time.Millisecond, respond: func(n int) string {
			return []string{"200 OK\r\n", "500 Internal Server Error\r\n"}[n%2]
		}}
		s := &sends{sender: newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{PerReceiver: 1, Policy: in.policy()})}
		for i := range 20 {
			ok, failed := fmt.Sprint("failed", i), fmt.Sprint("ok", i)
			check(t, failed, s.sender.Send(t.Context(), "acme", "e", message), deliver.Failed, deliver.ReasonStatus)
			s.start(t.Context(), "e", ok)
			r := s.sender.Send(t.Context(), "acme", "e", message)
			check(t, "busy", r, deliver.Deferred, deliver.ReasonBusy)
			if r.Duration != 0 {
				t.Errorf("waited %v", r.Duration)
			}
			time.Sleep(in.takes)
			synctest.Wait()
			check(t, ok, s.results[ok], deliver.Delivered, "")
		}
		s.wait()
	})
}

// TestPanicAfterWaiting: a panic of the second lookup releases the slot.
func TestPanicAfterWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{takes: 100 * time.Millisecond}
		st, calls := configured(t, "http://example.com"), 0
		webhooks := resolver(func(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
			if calls++; calls == 3 {
				panic(errPanic)
			}
			return st.Resolve(ctx, client, entity)
		})
		s := &sends{sender: newSender(t, webhooks, keyring{deliver.GenerateKey()}, &deliver.Options{PerReceiver: 1, Policy: in.policy()})}
		s.start(t.Context(), "e", "first")
		if got := recovered(func() { s.sender.Send(t.Context(), "acme", "e", message) }); got != errPanic {
			t.Errorf("recovered %v", got)
		}
		check(t, "first", s.wait()["first"], deliver.Delivered, "")
	})
}
