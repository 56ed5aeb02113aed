package egress_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// waitOf returns the time to wait, through the interface that the handler uses.
func waitOf(err error) time.Duration {
	var limited interface{ RetryAfter() time.Duration }
	if !errors.As(err, &limited) {
		return 0
	}
	return limited.RetryAfter()
}

// newQuickProber returns a prober over a network in which every connection fails at
// once.
func newQuickProber(t *testing.T, opts *egress.ProberOptions) func(client string) error {
	t.Helper()
	policy := newStrict()
	policy.Resolver, policy.Dial = resolveTo(publicAddr), new(recorder).Dial
	prober := newProber(t, policy, opts)
	return func(client string) error {
		return prober.Probe(t.Context(), client, egress.NewURL("https://receiver.example/"))
	}
}

func TestRateOfClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probe := newQuickProber(t, &egress.ProberOptions{ClientProbesPerMinute: 4})
		for range 4 {
			if err := probe("a"); !errors.Is(err, errDialled) {
				t.Fatalf("within the rate: %v", err)
			}
			time.Sleep(time.Second)
		}
		for range 3 {
			if wait := waitOf(probe("a")); wait != 11*time.Second {
				t.Fatalf("beyond the rate: wait %v", wait)
			}
		}
		if err := probe("b"); !errors.Is(err, errDialled) {
			t.Errorf("another client: %v", err)
		}
		time.Sleep(11*time.Second - time.Nanosecond)
		if wait := waitOf(probe("a")); wait != time.Nanosecond {
			t.Errorf("a little early: wait %v", wait)
		}
		time.Sleep(time.Nanosecond)
		if err := probe("a"); !errors.Is(err, errDialled) {
			t.Errorf("after the wait: %v", err)
		}
		if wait := waitOf(probe("a")); wait != 15*time.Second {
			t.Errorf("after another probe: wait %v", wait)
		}
	})
}

// TestGreedyClient has a client probe as often as it can: 60 times at once by default, and
// then once a second. So does any number of probes a minute that a host can choose.
func TestGreedyClient(t *testing.T) {
	for perMinute, want := range map[int]int{0: 60 + 599, 7: 7 + 70, math.MaxInt: 1000} {
		synctest.Test(t, func(t *testing.T) {
			probe := newQuickProber(t, &egress.ProberOptions{ClientProbesPerMinute: perMinute})
			probes := 0
			for start := time.Now(); time.Since(start) < 10*time.Minute && probes < 1000; {
				err := probe("a")
				switch wait := waitOf(err); {
				case wait > 0:
					time.Sleep(wait)
				case errors.Is(err, errDialled):
					probes++
				default:
					t.Fatal(err)
				}
			}
			if probes != want {
				t.Errorf("%d probes a minute: %d in ten minutes, want %d", perMinute, probes, want)
			}
		})
	}
}

func TestConcurrencyOfClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newHanging()
		prober := newHangingProber(t, network, &egress.ProberOptions{MaxProbes: 11}) // two for a client
		first := startProbe(t.Context(), prober, "a", "http://one.example/")
		second := startProbe(t.Context(), prober, "a", "http://two.example/")
		synctest.Wait()
		err := <-startProbe(t.Context(), prober, "a", "http://three.example/")
		if waitOf(err) != time.Second {
			t.Errorf("the third: %v", err)
		}
		other := startProbe(t.Context(), prober, "b", "http://three.example/")
		synctest.Wait()
		network.release()
		for _, result := range []<-chan error{first, second, other} {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		if err := <-startProbe(t.Context(), prober, "a", "http://three.example/"); err != nil {
			t.Errorf("after the others ended: %v", err)
		}
	})
}

// TestMaxProbes has one slot and three callers that need it. The second gets it in time,
// and then has the whole timeout; the third does not.
func TestMaxProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newHanging()
		prober := newHangingProber(t, network, &egress.ProberOptions{MaxProbes: 1})
		first := startProbe(t.Context(), prober, "a", "http://one.example/")
		time.Sleep(4500 * time.Millisecond)
		second := startProbe(t.Context(), prober, "b", "http://two.example/")
		synctest.Wait()
		if n := len(network.dialled); n != 1 {
			t.Errorf("%d connections at the same time", n)
		}
		<-first
		synctest.Wait()
		if n := len(network.dialled); n != 2 {
			t.Errorf("%d connections once the slot was free", n)
		}
		start := time.Now()
		third := startProbe(t.Context(), prober, "c", "http://three.example/")
		if err := <-third; waitOf(err) != time.Second || time.Since(start) != time.Second {
			t.Errorf("the third: %v after %v", err, time.Since(start))
		}
		if err := <-second; reasonOf(err) != egress.ReasonTimeout || time.Since(start) != 5*time.Second {
			t.Errorf("the second: %v after %v", err, time.Since(start))
		}
	})
}

func TestCallerLeavesWhileProbeWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newHanging()
		prober := newHangingProber(t, network, &egress.ProberOptions{MaxProbes: 1})
		first := startProbe(t.Context(), prober, "a", "http://one.example/")
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		second := startProbe(ctx, prober, "b", "http://two.example/")
		synctest.Wait()
		cancel()
		if err := <-second; !errors.Is(err, context.Canceled) || time.Since(start) != 0 {
			t.Errorf("Probe = %v after %v", err, time.Since(start))
		}
		network.release()
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// TestDisconnectedClientIsStillCharged: the probe of a client that has disconnected
// counts against its limit until the probe ends.
func TestDisconnectedClientIsStillCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prober := newHangingProber(t, newHanging(), &egress.ProberOptions{MaxProbes: 10}) // one for a client
		ctx, cancel := context.WithCancel(t.Context())
		first := startProbe(ctx, prober, "a", "http://one.example/")
		synctest.Wait()
		joined := startProbe(t.Context(), prober, "b", "http://one.example/")
		synctest.Wait()
		cancel()
		<-first
		if err := <-startProbe(t.Context(), prober, "a", "http://two.example/"); waitOf(err) != time.Second {
			t.Errorf("while its probe runs: %v", err)
		}
		<-joined
		for _, client := range []string{"a", "b"} {
			if err := <-startProbe(t.Context(), prober, client, "http://two.example/"); reasonOf(err) != egress.ReasonTimeout {
				t.Errorf("client %s, after the probe ended: %v", client, err)
			}
		}
	})
}

// TestManyClients has more clients than the limiter remembers. None is refused for that.
func TestManyClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probe := newQuickProber(t, &egress.ProberOptions{ClientProbesPerMinute: 1})
		for i := range 10_000 {
			if err := probe(fmt.Sprint("client ", i)); !errors.Is(err, errDialled) {
				t.Fatal(err)
			}
		}
		if waitOf(probe("client 0")) == 0 {
			t.Error("a client was forgotten too early")
		}
		if err := probe("one more"); !errors.Is(err, errDialled) {
			t.Errorf("one more client: %v", err)
		}
	})
}

func TestLimitErrorText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		probe := newQuickProber(t, &egress.ProberOptions{ClientProbesPerMinute: 1})
		_ = probe("a")
		err := probe("a")
		if want := "egress: too many probes; retry after 1m0s"; err == nil || err.Error() != want {
			t.Errorf("text %q, want %q", err, want)
		}
	})
}
