package deliver_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestLimits: a receiver that hangs takes a limited number of the workers of a queue, and
// so does a client with many such receivers.
func TestLimits(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	hang := func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-release
	}
	first, second := newReceiver(t, false, hang), newReceiver(t, false, hang)
	healthy := newReceiver(t, false, status(200))
	st := configured(t, first.URL)
	for entity, r := range map[string]*receiver{"second": second, "healthy": healthy} {
		if err := st.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.Entity(entity), egress.NewURL(r.URL))); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Apply(t.Context(), webhookcfg.SetChange("globex", webhookcfg.All(), egress.NewURL(first.URL))); err != nil {
		t.Fatal(err)
	}
	s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{PerClient: 3, PerHost: 2})
	results := make(chan deliver.Result)
	start := func(client, entity string) {
		t.Helper()
		go func() { results <- s.Send(t.Context(), client, entity, message) }()
		<-arrived
	}
	start("acme", "first")
	check(t, "healthy", s.Send(t.Context(), "acme", "healthy", message), deliver.Delivered, "")
	start("acme", "first")
	check(t, "receiver", s.Send(t.Context(), "acme", "first", message), deliver.Deferred, deliver.ReasonBusy)
	start("acme", "second")
	check(t, "client", s.Send(t.Context(), "acme", "healthy", message), deliver.Deferred, deliver.ReasonBusy)
	start("globex", "first")
	close(release)
	for range 4 {
		check(t, "released", <-results, deliver.Delivered, "")
	}
	go func() { <-arrived }()
	check(t, "after", s.Send(t.Context(), "acme", "first", message), deliver.Delivered, "")
	if n := len(first.received()) + len(second.received()) + len(healthy.received()); n != 6 {
		t.Errorf("%d requests", n)
	}
}

// TestLimitsOfClient: clients may have limits of their own, which apply from the next Send on.
// Those of zero or less are the default.
func TestLimitsOfClient(t *testing.T) {
	for _, tt := range []struct {
		perClient, perHost int
		want               int // attempts of 10 at one receiver and 10 at another
	}{
		{0, 0, 5},
		{-1, -1, 5},
		{10, 0, 6},
		{0, 1, 2},
		{10, 5, 10},
		{1, 100, 1},
		{100, 100, 20},
	} {
		t.Run(fmt.Sprint(tt.perClient, tt.perHost), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := &inbox{takes: time.Second}
				st := configured(t, "http://example.com")
				if err := st.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.Entity("other"), egress.NewURL("http://example.org"))); err != nil {
					t.Fatal(err)
				}
				s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{
					PerClient: 5, PerHost: 3, Policy: in.policy(),
					Limits: func(client string) (int, int) {
						if client != "acme" {
							t.Errorf("limits of %s", client)
						}
						return tt.perClient, tt.perHost
					},
				})}
				for i := range 10 {
					s.start(t.Context(), "e", fmt.Sprint("e", i))
					s.start(t.Context(), "other", fmt.Sprint("other", i))
				}
				s.wait()
				if n := len(in.requests); n != tt.want {
					t.Errorf("%d requests, want %d", n, tt.want)
				}
			})
		})
	}
}

// TestLimitsGrow: the limits that a client is given apply from the next Send on.
func TestLimitsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, limit := &inbox{takes: 200 * time.Millisecond}, 1
		s := &sends{sender: newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{
			Policy: in.policy(), Limits: func(string) (int, int) { return 10, limit },
		})}
		for i := range 4 {
			s.start(t.Context(), "e", fmt.Sprint("one", i))
		}
		limit = 3
		for i := range 4 {
			s.start(t.Context(), "e", fmt.Sprint("three", i))
		}
		s.wait()
		if got, want := in.ids(), []string{"one0", "three0", "three1"}; !slices.Equal(got, want) {
			t.Errorf("sent %v, want %v", got, want)
		}
	})
}

// TestLimitsPanic: a panic of Limits is one of Send, and leaves nothing occupied.
func TestLimitsPanic(t *testing.T) {
	r, panics := newReceiver(t, false, status(200)), true
	s := newSender(t, configured(t, r.URL), keyring{deliver.GenerateKey()}, &deliver.Options{PerClient: 1, Limits: func(string) (int, int) {
		if panics {
			panic(errPanic)
		}
		return 0, 0
	}})
	if got := recovered(func() { s.Send(t.Context(), "acme", "e1", message) }); got != errPanic {
		t.Errorf("recovered %v", got)
	}
	panics = false
	check(t, "after", s.Send(t.Context(), "acme", "e1", message), deliver.Delivered, "")
}

// TestDeferredTogether: messages that were deferred together don't come back together, and none
// comes back before it makes sense.
func TestDeferredTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := resolver(func(context.Context, string, string) (webhookcfg.Webhook, error) {
			return webhookcfg.Webhook{}, errPanic
		})
		unsigned := newSender(t, configured(t, "http://127.0.0.1:1"), keyring{}, nil)
		full := newSender(t, configured(t, "http://127.0.0.1:1"), keyring{deliver.GenerateKey()}, &deliver.Options{PerHost: 1})
		defer full.TakeSlot(t.Context(), "acme", "e1", message)()
		for name, tt := range map[string]struct {
			sender *deliver.Sender
			least  time.Duration
		}{
			"no store": {newSender(t, broken, keyring{}, nil), time.Second},
			"no keys":  {unsigned, time.Second},
			"no slot":  {full, 100 * time.Millisecond},
		} {
			waits := make(map[time.Duration]bool)
			for range 20 {
				r := tt.sender.Send(t.Context(), "acme", "e1", message)
				waits[r.Wait] = true
				if r.Outcome != deliver.Deferred || r.Wait < tt.least || r.Wait > 2*tt.least {
					t.Errorf("%s: %v, wait %v", name, r.Outcome, r.Wait)
				}
			}
			if len(waits) < 15 {
				t.Errorf("%s: only %d different waits", name, len(waits))
			}
		}
	})
}
