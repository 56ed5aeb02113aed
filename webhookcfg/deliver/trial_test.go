package deliver_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// setAgain sets the base of acme to the same URL.
func setAgain(t *testing.T, st webhookcfg.Store) {
	t.Helper()
	c := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL("http://example.com"+secretPath))
	c.Time = time.Now()
	hooktest.Apply(t, st, c)
}

// TestTrial: a stopped webhook that's set to the same URL again gets one attempt at once, even if several
// messages come, and at most one a minute. It goes on if that succeeds.
func TestTrial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		response := "410 Gone\r\n"
		in := &inbox{takes: time.Second, respond: func(int) string { return response }}
		st := store.NewMemory()
		setAgain(t, st)
		s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), Health: newHealth(t, nil, nil)})}
		send := func(name string, outcome deliver.Outcome, reason deliver.Reason) {
			t.Helper()
			check(t, name, s.sender.Send(t.Context(), "acme", "e1", message), outcome, reason)
		}
		send("gone", deliver.Undeliverable, deliver.ReasonGone)
		send("stopped", deliver.Undeliverable, deliver.ReasonStopped)

		setAgain(t, st)
		s.start(t.Context(), "e1", "ontrial")
		send("another one meanwhile", deliver.Deferred, deliver.ReasonBusy)
		time.Sleep(time.Millisecond)
		setAgain(t, st) // while the attempt is under way
		send("no other one within a minute", deliver.Undeliverable, deliver.ReasonStopped)
		check(t, "on trial", s.wait()["ontrial"], deliver.Undeliverable, deliver.ReasonGone)
		time.Sleep(time.Minute)
		send("a minute later", deliver.Undeliverable, deliver.ReasonGone)
		send("once", deliver.Undeliverable, deliver.ReasonStopped)

		setAgain(t, st)
		time.Sleep(90 * time.Second)
		send("later", deliver.Undeliverable, deliver.ReasonGone)
		setAgain(t, st)
		send("within a minute of the attempt", deliver.Undeliverable, deliver.ReasonStopped)

		// One that sets it all the time gets an attempt as soon as it's due.
		for range 50 {
			time.Sleep(2 * time.Second)
			setAgain(t, st)
			_, _ = s.sender.Lookup(t.Context(), "acme", "e1")
		}
		response = "204 No Content\r\n"
		send("repaired", deliver.Delivered, "")
		send("goes on", deliver.Delivered, "")
		s.sender.CloseIdleConnections()
	})
}

// TestTrialWithoutRequest: an attempt that ends before its request doesn't use up the one that a webhook
// set again has, not even by a panic.
func TestTrialWithoutRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		responses := []string{"410 Gone\r\n", "204 No Content\r\n"}
		in := &inbox{respond: func(n int) string { return responses[n-1] }}
		st := store.NewMemory()
		setAgain(t, st)
		var fail func() error
		keys := keysFunc(func(context.Context, deliver.Recipient) ([]deliver.Key, error) {
			if fail != nil {
				return nil, fail()
			}
			return []deliver.Key{deliver.GenerateKey()}, nil
		})
		s := newSender(t, st, keys, &deliver.Options{Policy: in.policy(), Health: newHealth(t, nil, nil)})
		check(t, "gone", s.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonGone)
		time.Sleep(time.Second)
		setAgain(t, st)
		fail = func() error { return errors.New("no keys") }
		check(t, "no keys", s.Send(t.Context(), "acme", "e1", message), deliver.Deferred, deliver.ReasonUnavailable)
		fail = func() error { panic("keys") }
		check(t, "panic", s.Send(t.Context(), "acme", "e1", message), deliver.Deferred, deliver.ReasonUnavailable)
		fail = nil
		a, r := s.Begin(t.Context(), "acme", "e1", message)
		if a == nil {
			t.Fatalf("Begin: %v", r)
		}
		// It isn't sent.
		check(t, "on trial", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
		s.CloseIdleConnections()
	})
}

// TestTrialElsewhere: a process that knows that it's the same URL doesn't write down the stop for others
// before its attempt has failed.
func TestTrialElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		p, q := newProcess(t, st), newProcess(t, st)
		p.send(deliver.Undeliverable, deliver.ReasonGone)
		time.Sleep(time.Second)
		p.hook.Since = time.Now().Truncate(time.Microsecond)
		q.hook.Since = p.hook.Since
		for i, of := range []process{p, q} {
			if _, stopped := of.stopped(); stopped {
				t.Errorf("process %d: stopped before the attempt", i)
			}
		}
		p.record(deliver.Failed, deliver.ReasonStatus)
		time.Sleep(time.Minute)
		for i, of := range []process{p, q} {
			if reason, stopped := of.stopped(); !stopped || reason != deliver.ReasonGone {
				t.Errorf("process %d: not stopped after the attempt", i)
			}
		}
	})
}
