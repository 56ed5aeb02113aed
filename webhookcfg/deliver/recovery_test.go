package deliver_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// recoveries collects the receivers that recovered.
type recoveries struct {
	mu  sync.Mutex
	all []string
}

func (r *recoveries) add(_ context.Context, client, hostport string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, client+" "+hostport)
}

// TestOnRecovered: the host learns once that a pause has ended well, of whichever kind it was,
// and nothing of a receiver that was not paused, or asked for a pause that is not over.
func TestOnRecovered(t *testing.T) {
	const (
		ok, failed = "200 OK\r\n", "500 Internal Server Error\r\n"
		asks       = "503 Service Unavailable\r\nRetry-After: 60\r\n"
	)
	for _, tt := range []struct {
		name      string
		responses []string // by attempts that are a minute apart
		recovered []int    // the attempts that ended a pause
	}{
		{"healthy", []string{ok, ok}, nil},
		{"four failures", []string{failed, failed, failed, failed, ok, ok}, nil},
		{"five failures", []string{failed, failed, failed, failed, failed, ok, ok}, []int{5}},
		{"six failures", []string{failed, failed, failed, failed, failed, failed, ok, ok}, []int{6}},
		{"asked for", []string{asks, ok, ok}, []int{1}},
		{"asked for, then failed", []string{asks, failed, ok, ok}, []int{2}},
		{"twice", []string{asks, ok, asks, ok}, []int{1, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := &inbox{respond: func(n int) string { return tt.responses[n-1] }}
				var r recoveries
				s := newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy(), OnRecovered: r.add})
				var got []int
				for i := range tt.responses {
					before := len(r.all)
					s.Send(t.Context(), "acme", "e", message)
					if len(r.all) > before {
						got = append(got, i)
					}
					time.Sleep(time.Minute)
				}
				s.CloseIdleConnections()
				if !slices.Equal(got, tt.recovered) || len(r.all) != len(got) {
					t.Errorf("recovered by the attempts %v, want %v: %v", got, tt.recovered, r.all)
				}
				for _, each := range r.all {
					if each != "acme example.com:80" {
						t.Errorf("recovered %s", each)
					}
				}
			})
		})
	}
}

// TestRecoveredBeforeTheEnd: a success of an attempt that was under way ends the pause after
// failures, but not the one that the receiver asked for.
func TestRecoveredBeforeTheEnd(t *testing.T) {
	for _, asked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			in := &inbox{takes: time.Second, respond: func(n int) string {
				switch {
				case n == 1 || n > 6:
					return "200 OK\r\n"
				case asked:
					return "503 Service Unavailable\r\nRetry-After: 60\r\n"
				default:
					return "500 Internal Server Error\r\n"
				}
			}}
			var r recoveries
			s := &sends{sender: newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{
				Policy: in.policy(), OnRecovered: r.add, PerReceiver: 6,
			})}
			s.start(t.Context(), "e", "first") // its response is the last one
			time.Sleep(500 * time.Millisecond)
			in.takes = 100 * time.Millisecond
			for i := range 5 {
				s.start(t.Context(), "e", fmt.Sprint(i))
			}
			check(t, "first", s.wait()["first"], deliver.Delivered, "")
			if recovered := len(r.all) > 0; recovered == asked {
				t.Errorf("asked %v: recovered %v", asked, recovered)
			}
			time.Sleep(time.Minute)
			check(t, "later", s.sender.Send(t.Context(), "acme", "e", message), deliver.Delivered, "")
			s.sender.CloseIdleConnections()
			if len(r.all) != 1 {
				t.Errorf("asked %v: recovered %d times", asked, len(r.all))
			}
		})
	}
}

// TestOnRecoveredFails: a hook that panics or blocks costs its own message only.
func TestOnRecoveredFails(t *testing.T) {
	for _, panics := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			in := &inbox{respond: func(n int) string {
				return []string{"503 Service Unavailable\r\nRetry-After: 60\r\n", "200 OK\r\n"}[min(n-1, 1)]
			}}
			release := make(chan struct{})
			s := &sends{sender: newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{
				PerClient: 1, PerReceiver: 1, Policy: in.policy(), OnRecovered: func(context.Context, string, string) {
					if panics {
						panic(errPanic)
					}
					<-release
				},
			})}
			check(t, "pause", s.sender.Send(t.Context(), "acme", "e", message), deliver.Failed, deliver.ReasonThrottled)
			time.Sleep(time.Minute)
			if panics {
				if got := recovered(func() { s.sender.Send(t.Context(), "acme", "e", message) }); got != errPanic {
					t.Errorf("recovered %v", got)
				}
			} else {
				s.start(t.Context(), "e", "blocked")
			}
			r := s.sender.Send(t.Context(), "acme", "e", message)
			check(t, "another message", r, deliver.Delivered, "")
			if r.Duration != 0 {
				t.Errorf("took %v", r.Duration)
			}
			close(release)
			s.wait()
		})
	}
}

// TestBacklogAfterRecovery: once a receiver has recovered, what was deferred until then has no
// effect on the turns of what comes now.
func TestBacklogAfterRecovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{takes: 100 * time.Millisecond, respond: func(n int) string {
			return []string{"503 Service Unavailable\r\nRetry-After: 60\r\n", "200 OK\r\n"}[min(n-1, 1)]
		}}
		s := &sends{sender: newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{
			PerReceiver: 1, Patience: -1, Policy: in.policy(),
		})}
		check(t, "pause", s.sender.Send(t.Context(), "acme", "e", message), deliver.Failed, deliver.ReasonThrottled)
		for range 1000 {
			check(t, "paused", s.sender.Send(t.Context(), "acme", "e", message), deliver.Deferred, deliver.ReasonPaused)
		}
		time.Sleep(time.Minute)
		check(t, "recovered", s.sender.Send(t.Context(), "acme", "e", message), deliver.Delivered, "")
		s.start(t.Context(), "e", "busy")
		r := s.sender.Send(t.Context(), "acme", "e", message)
		check(t, "deferred", r, deliver.Deferred, deliver.ReasonBusy)
		if r.Wait > time.Second {
			t.Errorf("wait %v", r.Wait)
		}
		s.wait()
	})
}

// TestReceivers: the host sees which receivers are busy, failing or paused, and can end a pause.
func TestReceivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{takes: 100 * time.Millisecond, respond: func(n int) string {
			return []string{"503 Service Unavailable\r\nRetry-After: 60\r\n", "500 Internal Server Error\r\n", "200 OK\r\n"}[min(n-1, 2)]
		}}
		st := configured(t, "http://example.com"+secretPath)
		for _, c := range []webhookcfg.Change{
			webhookcfg.SetChange("acme", webhookcfg.Entity("other"), egress.NewURL("http://example.org:8080")),
			webhookcfg.SetChange("globex", webhookcfg.All(), egress.NewURL("http://example.com")),
		} {
			if err := st.Apply(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{PerReceiver: 1, Policy: in.policy()})}
		start := time.Now()
		want := func(name string, want ...string) {
			t.Helper()
			var got []string
			for r := range s.sender.Receivers() {
				d := fmt.Sprintf("%s %s %d+%d, %d failures", r.Client, r.HostPort, r.UnderWay, r.Waiting, r.Failures)
				if !r.PausedUntil.IsZero() {
					d += fmt.Sprint(" until ", r.PausedUntil.Sub(start))
				}
				got = append(got, d)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
		}
		want("at first")
		s.sender.Send(t.Context(), "acme", "e", message)
		want("paused", "acme example.com:80 0+0, 1 failures until 1m0.1s")
		s.sender.Send(t.Context(), "acme", "other", message)
		s.start(t.Context(), "other", "underway")
		want("under way", "acme example.com:80 0+0, 1 failures until 1m0.1s", "acme example.org:8080 1+0, 1 failures")
		time.Sleep(in.takes)
		synctest.Wait()
		want("succeeded", "acme example.com:80 0+0, 1 failures until 1m0.1s")
		s.start(t.Context(), "other", "first")
		s.start(t.Context(), "other", "second")
		want("waiting", "acme example.com:80 0+0, 1 failures until 1m0.1s", "acme example.org:8080 1+1, 0 failures")
		s.wait()

		check(t, "paused", s.sender.Send(t.Context(), "acme", "e", message), deliver.Deferred, deliver.ReasonPaused)
		check(t, "another client", s.sender.Send(t.Context(), "globex", "e", message), deliver.Delivered, "")
		s.sender.Resume("globex", "example.com:80")
		s.sender.Resume("acme", "example.com:443")
		s.sender.Resume("acme", "")
		check(t, "still paused", s.sender.Send(t.Context(), "acme", "e", message), deliver.Deferred, deliver.ReasonPaused)
		s.sender.Resume("acme", "example.com:80")
		want("resumed")
		check(t, "resumed", s.sender.Send(t.Context(), "acme", "e", message), deliver.Delivered, "")

		s.start(t.Context(), "e", "third")
		s.sender.Resume("acme", "example.com:80") // of a receiver with an attempt, which goes on
		want("resumed under way", "acme example.com:80 1+0, 0 failures")
		s.start(t.Context(), "other", "fourth")
		for range s.sender.Receivers() {
			s.sender.Resume("acme", "example.com:80") // may be called meanwhile
			break
		}
		s.wait()
		want("at last")
	})
}

// TestLimitsOfClient: clients may have limits of their own, which apply from the next Send on.
// Those of zero or less are the default.
func TestLimitsOfClient(t *testing.T) {
	for _, tt := range []struct {
		perClient, perReceiver int
		want                   int // attempts of 10 at one receiver and 10 at another
	}{
		{0, 0, 5},
		{-1, -1, 5},
		{10, 0, 6},
		{0, 1, 2},
		{10, 5, 10},
		{1, 100, 1},
		{100, 100, 20},
	} {
		t.Run(fmt.Sprint(tt.perClient, tt.perReceiver), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := &inbox{takes: time.Second}
				st := configured(t, "http://example.com")
				if err := st.Apply(t.Context(), webhookcfg.SetChange("acme", webhookcfg.Entity("other"), egress.NewURL("http://example.org"))); err != nil {
					t.Fatal(err)
				}
				s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{
					PerClient: 5, PerReceiver: 3, Patience: -1, Policy: in.policy(),
					Limits: func(client string) (int, int) {
						if client != "acme" {
							t.Errorf("limits of %s", client)
						}
						return tt.perClient, tt.perReceiver
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

// TestLimitsGrow: those who wait get the slots that a client is given meanwhile, before those
// that come later.
func TestLimitsGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, limit := &inbox{takes: 200 * time.Millisecond}, 1
		s := &sends{sender: newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{
			Policy: in.policy(), Limits: func(string) (int, int) { return 10, limit },
		})}
		for i := range 4 {
			s.start(t.Context(), "e", fmt.Sprint(i))
		}
		limit = 3
		s.start(t.Context(), "e", "late")
		if got := in.ids(); len(got) != 3 || slices.Contains(got, "late") {
			t.Errorf("sent %v", got)
		}
		s.wait()
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
