package deliver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/delivertest"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// records is a HealthStore in memory.
type records struct {
	mu  sync.Mutex
	all map[string]deliver.Record
}

func (r *records) LoadDelivery(_ context.Context, client string, scope webhookcfg.Scope) (deliver.Record, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[fmt.Sprint(client, scope)], nil
}

func (r *records) SaveDelivery(_ context.Context, client string, scope webhookcfg.Scope, rec deliver.Record) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]deliver.Record{}
	}
	r.all[fmt.Sprint(client, scope)] = rec
	return nil
}

// setNow sets a webhook of acme at the present time, without which it is never stopped.
func setNow(t testing.TB, st webhookcfg.Store, scope webhookcfg.Scope, url string) {
	t.Helper()
	change := webhookcfg.SetChange("acme", scope, egress.NewURL(url))
	change.Time = time.Now()
	hooktest.Apply(t, st, change)
}

// TestTestEndsStop: a test of a stopped base is sent, and ends the stop of the base alone, in
// every process. The overrides of the client stay.
func TestTestEndsStop(t *testing.T) {
	for _, shared := range []deliver.HealthStore{nil, &records{}} {
		t.Run(fmt.Sprintf("%T", shared), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const gone, ok = "410 Gone\r\n", "200 OK\r\n"
				response := gone
				in := &inbox{respond: func(int) string { return response }}
				st := store.NewMemory()
				setNow(t, st, webhookcfg.All(), "http://example.com/base")
				setNow(t, st, webhookcfg.Entity("own"), "http://example.com/own")
				sender := func() *deliver.Sender {
					health, err := deliver.NewHealth(shared, nil)
					if err != nil {
						t.Fatal(err)
					}
					return newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), Health: health})
				}
				s, other := sender(), sender()
				send := func(name string, s *deliver.Sender, entity string, outcome deliver.Outcome, reason deliver.Reason) {
					t.Helper()
					check(t, name, s.Send(t.Context(), "acme", entity, message), outcome, reason)
					time.Sleep(2 * time.Minute) // processes learn of each other within one
				}
				send("stops the base", s, "e1", deliver.Undeliverable, deliver.ReasonGone)
				send("stops the override", s, "own", deliver.Undeliverable, deliver.ReasonGone)
				if shared != nil {
					send("stopped elsewhere", other, "e1", deliver.Undeliverable, deliver.ReasonStopped)
				}

				check(t, "a test that fails", s.Test(t.Context(), "acme", "", message), deliver.Undeliverable, deliver.ReasonGone)
				time.Sleep(time.Minute)
				send("still stopped", s, "e1", deliver.Undeliverable, deliver.ReasonStopped)
				response = ok
				check(t, "a test", s.Test(t.Context(), "acme", "", message), deliver.Delivered, "")
				time.Sleep(2 * time.Minute)
				send("the base", s, "e1", deliver.Delivered, "")
				send("the override", s, "own", deliver.Undeliverable, deliver.ReasonStopped)
				if shared != nil {
					send("the base elsewhere", other, "e1", deliver.Delivered, "")
				}
				check(t, "a test of the override", s.Test(t.Context(), "acme", "own", message), deliver.Delivered, "")
				send("the override", s, "own", deliver.Delivered, "")
				s.CloseIdleConnections()
				other.CloseIdleConnections()
				page, err := st.List(t.Context(), "acme", "", 10)
				if err != nil || len(page.Overrides) != 1 {
					t.Errorf("overrides %v, error %v", page.Overrides, err)
				}
			})
		})
	}
}

// TestTestEndsStopForGood: a test that was accepted has ended the stop in the HealthStore, or says that
// it hasn't, and then the webhook is still shown as stopped. The process makes no other attempt.
func TestTestEndsStopForGood(t *testing.T) {
	broken := func(context.Context) error { return errBroken }
	hanging := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, tt := range map[string]struct {
		load, save func(context.Context) error // during the test
		hung       bool                        // for another client, a moment ago
		fails      bool
	}{
		"works":      {},
		"load fails": {load: broken, fails: true},
		"save fails": {save: broken, fails: true},
		"load hangs": {load: hanging, fails: true},
		"save hangs": {save: hanging, fails: true},
		"has hung":   {hung: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				response := "410 Gone\r\n"
				in := &inbox{respond: func(int) string { return response }}
				st, shared := store.NewMemory(), &healthStore{}
				setNow(t, st, webhookcfg.All(), "http://example.com/")
				process := func() (*deliver.Sender, *deliver.Health) {
					health := newHealth(t, shared, nil)
					return newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), Health: health}), health
				}
				send := func(name string, outcome deliver.Outcome, reason deliver.Reason) {
					t.Helper()
					worker, _ := process()
					check(t, name, worker.Send(t.Context(), "acme", "e1", message), outcome, reason)
					worker.CloseIdleConnections()
				}
				send("stops it", deliver.Undeliverable, deliver.ReasonGone)
				response = "200 OK\r\n"
				time.Sleep(time.Second)

				page, health := process()
				hook, err := st.Resolve(t.Context(), "acme", "e1")
				if err != nil {
					t.Fatal(err)
				}
				state := func() string {
					status, err := health.Status(t.Context(), "acme", "e1", hook)
					if err != nil {
						t.Error(err)
					}
					return status.State
				}
				if tt.hung {
					shared.fail(hanging, nil)
					health.Stopped(t.Context(), "other", "e1", hook)
				}
				test := page.Tester(message)
				shared.fail(tt.load, tt.save)
				reason, err := test(t.Context(), "acme", "", hook)
				shared.fail(nil, nil)
				if reason != "" || (err != nil) != tt.fails {
					t.Errorf("test: %q, %v", reason, err)
				}
				if tt.fails {
					if state() != "stopped" {
						t.Errorf("the state is %s after a test that wasn't saved", state())
					}
					send("after the first test", deliver.Undeliverable, deliver.ReasonStopped)
					time.Sleep(10 * time.Second)
					if reason, err := test(t.Context(), "acme", "", hook); reason != "" || err != nil {
						t.Errorf("another test: %q, %v", reason, err)
					}
				}
				if state() != "ok" {
					t.Errorf("the state is %s", state())
				}
				send("after the test", deliver.Delivered, "")
				page.CloseIdleConnections()
			})
		})
	}
}

// TestTestBeforeStop: a test that started before the webhook was stopped doesn't end the stop, and
// says so.
func TestTestBeforeStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{respond: func(int) string { return "200 OK\r\n" }}
		st, shared := store.NewMemory(), &healthStore{}
		setNow(t, st, webhookcfg.All(), "http://example.com/")
		hook, err := st.Resolve(t.Context(), "acme", "e1")
		if err != nil {
			t.Fatal(err)
		}
		stop := deliver.Record{Since: hook.Since, Reason: deliver.ReasonGone, Stopped: true, LastFailure: time.Now().Add(time.Minute)}
		if err := shared.SaveDelivery(t.Context(), "acme", webhookcfg.All(), stop); err != nil {
			t.Fatal(err)
		}
		s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), Health: newHealth(t, shared, nil)})
		defer s.CloseIdleConnections()
		for _, stays := range []bool{true, false} {
			if reason, err := s.Tester(message)(t.Context(), "acme", "", hook); reason != "" || (err != nil) != stays {
				t.Errorf("stays stopped %v: got %q, %v", stays, reason, err)
			}
			time.Sleep(2 * time.Minute)
		}
	})
}

// TestTestEndsStopElsewhere: a process that knows of an older setting only ends the stop of the
// present one.
func TestTestEndsStopElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		response := "200 OK\r\n"
		in := &inbox{respond: func(int) string { return response }}
		st, shared := store.NewMemory(), &records{}
		sender := func() *deliver.Sender {
			health, err := deliver.NewHealth(shared, nil)
			if err != nil {
				t.Fatal(err)
			}
			return newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), Health: health})
		}
		s, other := sender(), sender()
		setNow(t, st, webhookcfg.All(), "http://example.com/first")
		check(t, "the first", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		time.Sleep(time.Minute)
		setNow(t, st, webhookcfg.All(), "http://example.com/second")
		response = "410 Gone\r\n"
		check(t, "the second", other.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonGone)
		time.Sleep(time.Minute)
		response = "200 OK\r\n"
		check(t, "test", s.Test(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		time.Sleep(time.Minute)
		check(t, "elsewhere", other.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		s.CloseIdleConnections()
		other.CloseIdleConnections()
	})
}

// TestTestEndsStopOfWhatItCalled: a test ends the stop of the webhook that it called, not that
// of one that the client has set meanwhile.
func TestTestEndsStopOfWhatItCalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		responses := []string{"410 Gone\r\n", "200 OK\r\n", "410 Gone\r\n"}
		st := store.NewMemory()
		setNow(t, st, webhookcfg.All(), "http://example.com/first")
		health, err := deliver.NewHealth(nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var s *deliver.Sender
		in := &inbox{}
		in.respond = func(n int) string {
			if n == 2 { // during the test: the client sets another, which is stopped
				time.Sleep(time.Second)
				setNow(t, st, webhookcfg.All(), "http://example.com/second")
				s.Send(t.Context(), "acme", "e1", message)
			}
			return responses[n-1]
		}
		s = newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), Health: health})
		check(t, "stops the first", s.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonGone)
		time.Sleep(time.Second)
		check(t, "test of the first", s.Test(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		time.Sleep(time.Second)
		check(t, "the second", s.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonStopped)
		s.CloseIdleConnections()
	})
}

// TestTestDuringPause: a test is sent while its webhook is paused, and a success ends the pause.
func TestTestDuringPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{respond: func(n int) string {
			if n <= 5 {
				return "500 Internal Server Error\r\n"
			}
			return "200 OK\r\n"
		}}
		s := newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy()})
		for range 5 {
			s.Send(t.Context(), "acme", "e1", message)
		}
		check(t, "paused", s.Send(t.Context(), "acme", "e1", message), deliver.Deferred, deliver.ReasonPaused)
		check(t, "test", s.Test(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		check(t, "afterwards", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		s.CloseIdleConnections()
	})
}

// TestTestsOfAClient: a client that knows many names of one server can't flood it with tests.
func TestTestsOfAClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{respond: func(int) string { return "200 OK\r\n" }}
		s := newSender(t, configured(t, "http://example.com/base"), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy()})
		hosts := 0
		try := func(client string) deliver.Result {
			hosts++
			return s.Try(t.Context(), client, "e1", egress.NewURL(fmt.Sprintf("http://example.com:%d/", 8000+hosts)), message)
		}
		for range 60 {
			check(t, "at first", try("acme"), deliver.Delivered, "")
		}
		more := try("acme")
		check(t, "one more", more, deliver.Deferred, deliver.ReasonBusy)
		if more.Wait != time.Second {
			t.Errorf("the wait is %v", more.Wait)
		}
		check(t, "another client", try("other"), deliver.Delivered, "")
		time.Sleep(time.Second)
		check(t, "a second later", try("acme"), deliver.Delivered, "")
		check(t, "at once after that", try("acme"), deliver.Deferred, deliver.ReasonBusy)
		check(t, "a notification", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
	})
}

// TestTestsOfAReceiver: a client tests a host and port once in ten seconds, whichever of its
// webhooks it names. Other clients and other hosts aren't concerned. A test that found no slot
// doesn't count.
func TestTestsOfAReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := false
		in := &inbox{respond: func(int) string {
			if hang {
				time.Sleep(time.Second)
			}
			return "200 OK\r\n"
		}}
		st := configured(t, "http://example.com/base")
		for client, changes := range map[string]map[string]string{
			"acme": {
				"same": "http://example.com:80/same", "port": "http://example.com:8080/", "host": "http://example.org/",
				"address": "http://[2606:4700:0:0::1]/", "spelling": "http://[2606:4700::0001]:80/",
			},
			"other": {"same": "http://example.com/other"},
		} {
			for entity, url := range changes {
				hooktest.Apply(t, st, webhookcfg.SetChange(client, webhookcfg.Entity(entity), egress.NewURL(url)))
			}
		}
		s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), PerHost: 1})
		check(t, "first", s.Test(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		time.Sleep(time.Second)
		for _, entity := range []string{"", "e2", "same"} {
			soon := s.Test(t.Context(), "acme", entity, message)
			check(t, "soon again", soon, deliver.Deferred, deliver.ReasonBusy)
			if soon.Wait != 9*time.Second {
				t.Errorf("the wait is %v", soon.Wait)
			}
		}
		check(t, "another port", s.Test(t.Context(), "acme", "port", message), deliver.Delivered, "")
		check(t, "another host", s.Test(t.Context(), "acme", "host", message), deliver.Delivered, "")
		check(t, "an address", s.Test(t.Context(), "acme", "address", message), deliver.Delivered, "")
		check(t, "the same address", s.Test(t.Context(), "acme", "spelling", message), deliver.Deferred, deliver.ReasonBusy)
		check(t, "another client", s.Test(t.Context(), "other", "same", message), deliver.Delivered, "")
		time.Sleep(9 * time.Second)
		check(t, "after the wait", s.Test(t.Context(), "acme", "same", message), deliver.Delivered, "")
		time.Sleep(10 * time.Second)
		hang = true
		sent := make(chan deliver.Result)
		go func() { sent <- s.Send(t.Context(), "acme", "e1", message) }()
		synctest.Wait()
		check(t, "no slot", s.Test(t.Context(), "acme", "same", message), deliver.Deferred, deliver.ReasonBusy)
		check(t, "the message in between", <-sent, deliver.Delivered, "")
		check(t, "a slot", s.Test(t.Context(), "acme", "same", message), deliver.Delivered, "")
		s.CloseIdleConnections()
	})
}

// TestTestAfterRetryAfter: a receiver that asked for a pause isn't tested before its end, no
// matter whether a notification or a test was told.
func TestTestAfterRetryAfter(t *testing.T) {
	for name, first := range map[string]func(*deliver.Sender, context.Context, string, string, deliver.Message) deliver.Result{
		"notification": (*deliver.Sender).Send,
		"test":         (*deliver.Sender).Test,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				requests := 0
				in := &inbox{respond: func(n int) string {
					requests = n
					if n == 1 {
						return "503 Service Unavailable\r\nRetry-After: 60\r\n"
					}
					return "200 OK\r\n"
				}}
				s := newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy()})
				check(t, "first", first(s, t.Context(), "acme", "e1", message), deliver.Failed, deliver.ReasonThrottled)
				time.Sleep(20 * time.Second)
				soon := s.Test(t.Context(), "acme", "e1", message)
				check(t, "during the pause", soon, deliver.Deferred, deliver.ReasonPaused)
				if soon.Wait != 40*time.Second || requests != 1 {
					t.Errorf("wait %v after %d requests", soon.Wait, requests)
				}
				time.Sleep(soon.Wait)
				check(t, "after it", s.Test(t.Context(), "acme", "e1", message), deliver.Delivered, "")
				s.CloseIdleConnections()
			})
		})
	}
}

// TestTestOfNothing: what cannot be tested is not called, and says why.
func TestTestOfNothing(t *testing.T) {
	r := newReceiver(t, false, status(http.StatusNoContent))
	st := configured(t, r.URL+secretPath)
	broken := resolver(func(context.Context, string, string) (webhookcfg.Webhook, error) {
		return webhookcfg.Webhook{}, errors.New("no connection")
	})
	for _, tt := range []struct {
		name               string
		webhooks           deliver.Resolver
		client, entity, id string
		outcome            deliver.Outcome
		reason             deliver.Reason
		err                string
	}{
		{"no client", broken, "", "e1", "m", deliver.Undeliverable, deliver.ReasonMessage, "without a client"},
		{"no message ID", st, "acme", "e1", "", deliver.Undeliverable, deliver.ReasonMessage, "ID"},
		{"no webhook", st, "other", "e1", "m", deliver.Undeliverable, deliver.ReasonNoWebhook, ""},
		{"no base", st, "other", "", "m", deliver.Undeliverable, deliver.ReasonNoWebhook, ""},
		{"no Lister", resolver(st.Resolve), "acme", "", "m", deliver.Undeliverable, deliver.ReasonMessage, "no Lister"},
		{"no store", broken, "acme", "e1", "m", deliver.Deferred, deliver.ReasonUnavailable, "no connection"},
		{"refused", store.NewMemory(), "acme", "e1", "m", deliver.Undeliverable, deliver.ReasonPolicy, "scheme"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if memory, ok := tt.webhooks.(*store.Memory); ok && tt.name == "refused" {
				set(t, memory, "ftp://example.com/")
			}
			s := newSender(t, tt.webhooks, keyring{deliver.GenerateKey()}, nil)
			result := s.Test(t.Context(), tt.client, tt.entity, deliver.Message{ID: tt.id, Body: message.Body})
			check(t, tt.name, result, tt.outcome, tt.reason)
			if text := fmt.Sprint(result.Err); !strings.Contains(text, tt.err) {
				t.Errorf("error %s, want %q in it", text, tt.err)
			}
		})
	}
	if n := len(r.received()); n != 0 {
		t.Errorf("%d requests", n)
	}
}

// TestTester: the outcome of a test in the words of the page. The test goes to the webhook of the
// page, although the Resolver still returns the previous one.
func TestTester(t *testing.T) {
	key := deliver.GenerateKey()
	receiver := delivertest.NewReceiver(t, keyring{key}, deliver.Recipient{Client: "acme"})
	previous := delivertest.NewReceiver(t, keyring{key}, deliver.Recipient{Client: "acme"})
	previous.Fail(http.StatusTeapot)
	st := configured(t, previous.URL())
	hook := webhookcfg.Webhook{URL: egress.NewURL(receiver.URL()), Source: webhookcfg.SourceBase, Since: time.Now()}
	test := newSender(t, st, keyring{key}, nil).Tester(deliver.Message{Body: []byte(`{"type":"test"}`)})
	if reason, err := test(t.Context(), "acme", "", hook); reason != "" || err != nil {
		t.Errorf("accepted: got %q, %v", reason, err)
	}
	var waiter interface{ RetryAfter() time.Duration }
	if reason, err := test(t.Context(), "acme", "e1", hook); reason != "" || !errors.As(err, &waiter) || waiter.RetryAfter() < time.Second || waiter.RetryAfter() > 10*time.Second {
		t.Errorf("a moment later: got %q, %v", reason, err)
	}
	receiver.Fail(http.StatusGone)
	test = newSender(t, st, keyring{key}, nil).Tester(deliver.Message{Body: []byte(`{"type":"test"}`)})
	if reason, err := test(t.Context(), "acme", "e1", hook); reason != "gone" || err != nil {
		t.Errorf("gone: got %q, %v", reason, err)
	}
	got := receiver.Received()
	if len(got) != 1 || string(got[0].Body) != `{"type":"test"}` || !strings.HasPrefix(got[0].ID, "test_") {
		t.Errorf("received %v", got)
	}
	if attempts := receiver.Attempts(); len(attempts) != 2 || attempts[0].Message.ID == attempts[1].Message.ID {
		t.Errorf("two tests have the same ID, or there are not two: %v", attempts)
	}
	if n := len(previous.Attempts()); n != 0 {
		t.Errorf("%d tests of the previous webhook", n)
	}
	for name, tt := range map[string]struct {
		keys    keyring
		message deliver.Message
		hook    webhookcfg.Webhook
	}{
		"no webhook":     {keyring{key}, deliver.Message{}, webhookcfg.Webhook{}},
		"no key":         {nil, deliver.Message{}, hook},
		"broken message": {keyring{key}, deliver.Message{ContentType: "?"}, hook},
	} {
		reason, err := newSender(t, st, tt.keys, nil).Tester(tt.message)(t.Context(), "acme", "e1", tt.hook)
		if reason != "" || err == nil || errors.As(err, &waiter) {
			t.Errorf("%s: got %q, %v", name, reason, err)
		} else if isNone := strings.Contains(err.Error(), "no webhook to test"); isNone != (name == "no webhook") {
			t.Errorf("%s: the error doesn't say why: %v", name, err)
		}
	}
}

// TestTrier: a test of a URL that isn't set is signed and limited like any other. It's neither
// stopped nor recorded, and needs no webhook.
func TestTrier(t *testing.T) {
	key := deliver.GenerateKey()
	receiver := delivertest.NewReceiver(t, keyring{key}, deliver.Recipient{Client: "acme"})
	health, err := deliver.NewHealth(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	st := configured(t, receiver.URL())
	hook, err := st.Resolve(t.Context(), "acme", "e1")
	if err != nil {
		t.Fatal(err)
	}
	for _, entity := range []string{"", "e1"} {
		try := newSender(t, st, keyring{key}, &deliver.Options{Health: health}).Trier(deliver.Message{Body: []byte(`{"type":"test"}`)})
		target := egress.NewURL(receiver.URL() + "/new")
		if reason, err := try(t.Context(), "acme", entity, target); reason != "" || err != nil {
			t.Errorf("accepted: got %q, %v", reason, err)
		}
		var waiter interface{ RetryAfter() time.Duration }
		if reason, err := try(t.Context(), "acme", entity, target); reason != "" || !errors.As(err, &waiter) || waiter.RetryAfter() < time.Second {
			t.Errorf("a moment later: got %q, %v", reason, err)
		}
		if reason, err := try(t.Context(), "acme", entity, egress.NewURL("http://10.0.0.1/")); reason != "refused" || err != nil {
			t.Errorf("against the policy: got %q, %v", reason, err)
		}
	}
	if got := receiver.Received(); len(got) != 2 || !strings.HasPrefix(got[0].ID, "test_") {
		t.Errorf("received %v", got)
	}
	if status, err := health.Status(t.Context(), "acme", "e1", hook); err != nil || status.State != "" {
		t.Errorf("it was recorded: %+v, %v", status, err)
	}
}

// TestTryPausesNothing: what comes of a try says nothing about the webhook in effect at the same
// host and port. Failed tries don't pause it, nor does the pause that a receiver asks for, and a
// success doesn't end its pause. Still a client can't try more often than it can test.
func TestTryPausesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var in *inbox
		responses := map[string]string{"/wrong": "500 Internal Server Error\r\n", "/busy": "503 Service Unavailable\r\nRetry-After: 3600\r\n", "/": "200 OK\r\n"}
		in = &inbox{respond: func(n int) string { return responses[in.requests[n-1].URL.Path] }}
		s := newSender(t, configured(t, "http://example.com/"), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy()})
		defer s.CloseIdleConnections()
		try := func(path string) deliver.Result {
			r := s.Try(t.Context(), "acme", "e1", egress.NewURL("http://example.com"+path), message)
			if r.Webhook.Source != webhookcfg.SourceNone {
				t.Errorf("the result of a try has the source %v", r.Webhook.Source)
			}
			return r
		}
		for path, reason := range map[string]deliver.Reason{"/wrong": deliver.ReasonStatus, "/busy": deliver.ReasonThrottled} {
			for range 6 {
				check(t, path, try(path), deliver.Failed, reason)
				check(t, "soon again", try("/"), deliver.Deferred, deliver.ReasonBusy)
				time.Sleep(10 * time.Second)
			}
			check(t, "after "+path, s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		}
		for range s.Failing() {
			t.Error("the webhook has a failure or a pause")
		}

		responses["/"] = responses["/wrong"]
		for range 5 {
			s.Send(t.Context(), "acme", "e1", message)
		}
		responses["/new"] = "200 OK\r\n"
		check(t, "a new URL", try("/new"), deliver.Delivered, "")
		check(t, "the old one", s.Send(t.Context(), "acme", "e1", message), deliver.Deferred, deliver.ReasonPaused)
	})
}

// TestTestCutShort: a test or a try with less time than a delivery, and anything that the caller
// cancels, says nothing about a receiver that responds later. Its state stays, the host hears of no
// change, and it isn't paused. A receiver that has a delivery's time has failed if it hangs.
func TestTestCutShort(t *testing.T) {
	const limit = 15 * time.Second // by default
	before := func(end time.Duration) func(t *testing.T) (context.Context, context.CancelFunc) {
		return func(t *testing.T) (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), end)
		}
	}
	cancelled := func(t *testing.T) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(limit/2, cancel)
		return ctx, cancel
	}
	type call func(context.Context, *deliver.Sender, webhookcfg.Webhook) (string, error)
	var send call = func(ctx context.Context, s *deliver.Sender, _ webhookcfg.Webhook) (string, error) {
		r := s.Send(ctx, "acme", "e1", message)
		return r.Reason.Public(), r.Err
	}
	var test call = func(ctx context.Context, s *deliver.Sender, hook webhookcfg.Webhook) (string, error) {
		return s.Tester(deliver.Message{})(ctx, "acme", "", hook)
	}
	var try call = func(ctx context.Context, s *deliver.Sender, _ webhookcfg.Webhook) (string, error) {
		return s.Trier(deliver.Message{})(ctx, "acme", "", egress.NewURL("http://example.com/new"))
	}
	for _, tt := range []struct {
		name    string
		call    call
		start   func(t *testing.T) (context.Context, context.CancelFunc)
		takes   time.Duration
		reason  string
		isLate  bool
		changes int
	}{
		{"test", test, before(limit / 2), 9 * time.Second, "", true, 0},
		{"test of what hangs", test, before(limit / 2), time.Hour, "", true, 0},
		{"cancelled test", test, cancelled, 9 * time.Second, "", false, 0},
		{"test with a delivery's time", test, before(limit), time.Hour, "unreachable", false, 1},
		{"test with more", test, before(2 * limit), time.Hour, "unreachable", false, 1},
		{"try", try, before(limit / 2), 9 * time.Second, "", true, 0},
		{"cancelled try", try, cancelled, 9 * time.Second, "", false, 0},
		{"try with a delivery's time", try, before(limit), time.Hour, "unreachable", false, 0},
		{"cancelled notification", send, cancelled, 9 * time.Second, "", false, 0},
		{"notification", send, before(2 * limit), time.Hour, "unreachable", false, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := &inbox{takes: 9 * time.Second}
				changes := 0
				health, err := deliver.NewHealth(nil, &deliver.HealthOptions{
					OnChange: func(context.Context, string, webhookcfg.Scope, webhookcfg.DeliveryStatus, webhookcfg.DeliveryStatus) {
						changes++
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				st := store.NewMemory()
				setNow(t, st, webhookcfg.All(), "http://example.com/")
				s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), Health: health})
				check(t, "a delivery", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
				hook, err := st.Resolve(t.Context(), "acme", "e1")
				if err != nil {
					t.Fatal(err)
				}
				status := func() webhookcfg.DeliveryStatus {
					status, err := health.Status(t.Context(), "acme", "", hook)
					if err != nil {
						t.Fatal(err)
					}
					return status
				}
				known := status()
				in.takes = tt.takes
				for range 6 { // five failures in a row pause a webhook
					ctx, cancel := tt.start(t)
					reason, err := tt.call(ctx, s, hook)
					cancel()
					if tt.reason != "" {
						if reason != tt.reason {
							t.Errorf("got %q, %v, want %q", reason, err, tt.reason)
						}
						break
					}
					unreachable, isUnreachable := errors.AsType[*egress.UnreachableError](err)
					if reason != "" || err == nil || isUnreachable != tt.isLate || isUnreachable && !unreachable.Timeout() {
						t.Errorf("got %q, %v", reason, err)
					}
					time.Sleep(10 * time.Second) // tests of a receiver are that far apart
				}
				if changes != tt.changes || changes == 0 && status() != known {
					t.Errorf("%d changes, status %+v, want %d and before %+v", changes, status(), tt.changes, known)
				}
				for r := range s.Failing() {
					if tt.changes == 0 {
						t.Errorf("it counts for the pause: %+v", r)
					}
				}
				s.CloseIdleConnections()
				time.Sleep(2 * time.Hour) // the receiver notices that its connections are closed
			})
		})
	}
}
