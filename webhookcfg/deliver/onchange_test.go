package deliver_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestOnChange: the host learns when deliveries start to fail, stop and succeed again, once for
// each change of state, also if the client sets the webhook again meanwhile.
func TestOnChange(t *testing.T) {
	const (
		ok, failed, gone = "200 OK\r\n", "500 Internal Server Error\r\n", "410 Gone\r\n"
		set              = "set"  // the client sets the webhook again
		test             = "test" // and tests it: 200
	)
	for _, tt := range []struct {
		name  string
		steps []string // two minutes apart
		want  []string
	}{
		{"well", []string{ok, ok}, nil},
		{"failing", []string{ok, failed, failed}, []string{"all: ok to failing status"}},
		{"failing from the start", []string{failed, failed}, []string{"all:  to failing status"}},
		{"recovered", []string{failed, ok, ok}, []string{"all:  to failing status", "all: failing to ok "}},
		{"gone", []string{gone, ok, ok}, []string{"all:  to stopped gone"}},
		{"gone, set, well", []string{ok, gone, set, ok}, []string{"all: ok to stopped gone", "all: stopped to ok "}},
		{"gone, set, gone", []string{gone, set, gone}, []string{"all:  to stopped gone"}},
		{"gone, tested", []string{gone, test, ok}, []string{"all:  to stopped gone", "all: stopped to ok "}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var response string
				in := &inbox{respond: func(int) string { return response }}
				st := store.NewMemory()
				setNow(t, st, webhookcfg.All(), "http://example.com/")
				process := func(shared deliver.HealthStore) (*deliver.Sender, *[]string) {
					var got []string
					health, err := deliver.NewHealth(shared, &deliver.HealthOptions{
						OnChange: func(_ context.Context, client string, scope webhookcfg.Scope, before, after webhookcfg.DeliveryStatus) {
							if client != "acme" {
								t.Errorf("client %s", client)
							}
							got = append(got, fmt.Sprintf("%v: %s to %s %s", scope, before.State, after.State, after.Reason))
						},
					})
					if err != nil {
						t.Fatal(err)
					}
					return newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), Health: health}), &got
				}
				shared := &records{}
				s, got := process(shared)
				other, learned := process(shared)
				for _, step := range tt.steps {
					switch step {
					case set:
						setNow(t, st, webhookcfg.All(), "http://example.com/")
					case test:
						response = ok
						s.Test(t.Context(), "acme", "e1", message)
					default:
						response = step
						s.Send(t.Context(), "acme", "e1", message)
					}
					time.Sleep(2 * time.Minute)
				}
				s.CloseIdleConnections()
				if !slices.Equal(*got, tt.want) {
					t.Errorf("%q, want %q", *got, tt.want)
				}
				// A process that starts later takes what it finds for known.
				response = ok
				other.Send(t.Context(), "acme", "e2", message)
				other.CloseIdleConnections()
				if states := *learned; len(states) > 1 || len(states) == 1 && states[0] != "all: failing to ok " {
					t.Errorf("the other process: %q", states)
				}
			})
		})
	}
}

// TestOnChangeWhileFlapping: a receiver that alternates between success and failure doesn't make
// the host hear of each change, even if the client sets the webhook again every time. The host
// hears of the last one.
func TestOnChangeWhileFlapping(t *testing.T) {
	const ok, failed = "200 OK\r\n", "500 Internal Server Error\r\n"
	for _, set := range []bool{false, true} {
		t.Run(fmt.Sprintf("set again %t", set), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				response := ok
				in := &inbox{respond: func(int) string { return response }}
				st := store.NewMemory()
				setNow(t, st, webhookcfg.All(), "http://example.com/")
				var told []string
				health, err := deliver.NewHealth(nil, &deliver.HealthOptions{
					OnChange: func(_ context.Context, _ string, _ webhookcfg.Scope, _, after webhookcfg.DeliveryStatus) {
						told = append(told, after.State)
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), Health: health})
				send := func(next string) {
					response = next
					s.Send(t.Context(), "acme", "e1", message)
					time.Sleep(30 * time.Second)
				}
				for range 55 { // minutes
					send(failed)
					if set {
						setNow(t, st, webhookcfg.All(), "http://example.com/")
					}
					send(ok)
				}
				if n := len(told); n != 4+5 {
					t.Errorf("told of %d changes in 55 minutes: %q", n, told)
				}
				untold, state := ok, "ok"
				if told[len(told)-1] == "ok" {
					untold, state = failed, "failing"
				}
				send(untold)
				if n := len(told); n != 4+5 {
					t.Errorf("told at once of a change to %s", state)
				}
				time.Sleep(10 * time.Minute)
				send(untold)
				if last := told[len(told)-1]; last != state {
					t.Errorf("at last told of %s, want %s", last, state)
				}
				s.CloseIdleConnections()
			})
		})
	}
}

// TestOnChangeElsewhere: a process also tells of a change that it learns from the HealthStore.
func TestOnChangeElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		response := "500 Internal Server Error\r\n"
		in := &inbox{respond: func(int) string { return response }}
		st, shared := store.NewMemory(), &records{}
		setNow(t, st, webhookcfg.All(), "http://example.com/")
		sender := func(got *[]string) *deliver.Sender {
			health, err := deliver.NewHealth(shared, &deliver.HealthOptions{
				OnChange: func(_ context.Context, _ string, _ webhookcfg.Scope, before, after webhookcfg.DeliveryStatus) {
					*got = append(*got, before.State+" to "+after.State)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			return newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), Health: health})
		}
		var got, learned []string
		s, other := sender(&got), sender(&learned)
		for _, response = range []string{"500 Internal Server Error\r\n", "410 Gone\r\n"} {
			s.Send(t.Context(), "acme", "e1", message)
			time.Sleep(2 * time.Minute)
			response = "500 Internal Server Error\r\n"
			other.Send(t.Context(), "acme", "e1", message)
			time.Sleep(2 * time.Minute)
		}
		s.CloseIdleConnections()
		other.CloseIdleConnections()
		if !slices.Equal(got, []string{" to failing", "failing to stopped"}) || !slices.Equal(learned, []string{"failing to stopped"}) {
			t.Errorf("told of %q, and elsewhere of %q", got, learned)
		}
	})
}

// TestOnChangePanics: a hook that panics costs its own message only.
func TestOnChangePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		response := "500 Internal Server Error\r\n"
		in := &inbox{respond: func(int) string { return response }}
		health, err := deliver.NewHealth(nil, &deliver.HealthOptions{
			OnChange: func(context.Context, string, webhookcfg.Scope, webhookcfg.DeliveryStatus, webhookcfg.DeliveryStatus) {
				panic("mail server")
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		s := newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), Health: health})
		func() {
			defer func() {
				if recovered := recover(); recovered != "mail server" {
					t.Errorf("recovered %v", recovered)
				}
			}()
			s.Send(t.Context(), "acme", "e1", message)
		}()
		check(t, "the next", s.Send(t.Context(), "acme", "e1", message), deliver.Failed, deliver.ReasonStatus)
		s.CloseIdleConnections()
	})
}
