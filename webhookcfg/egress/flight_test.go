package egress_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

const target = "http://receiver.example/secret"

func TestConcurrentProbesAreOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newHanging()
		prober := newHangingProber(t, network, nil)
		var results []<-chan error
		for _, client := range []string{"a", "a", "b", "c"} {
			results = append(results, ask(t.Context(), prober, client, target))
		}
		other := ask(t.Context(), prober, "a", "http://other.example/")
		synctest.Wait()
		if n := len(network.begun); n != 2 {
			t.Errorf("%d connections for two targets", n)
		}
		network.release()
		for _, result := range append(results, other) {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
	})
}

func TestResultIsNotRemembered(t *testing.T) {
	lookUps := 0
	policy := newStrict()
	policy.Resolver = countingResolver(&lookUps)
	policy.Dial = new(recorder).Dial
	prober := newProber(t, policy, nil)
	for want := 1; want <= 3; want++ {
		_ = prober.Probe(t.Context(), "client", egress.NewURL("https://receiver.example/"))
		if lookUps != want {
			t.Fatalf("%d look-ups after %d probes", lookUps, want)
		}
	}
}

func TestHangUpFailsNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newHanging()
		prober := newHangingProber(t, network, nil)
		ctx, hangUp := context.WithCancel(t.Context())
		first := ask(ctx, prober, "a", target)
		synctest.Wait()
		second := ask(t.Context(), prober, "b", target)
		synctest.Wait()
		hangUp()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("who hung up got %v", err)
		}
		synctest.Wait()
		network.release()
		if err := <-second; err != nil {
			t.Errorf("who waited got %v", err)
		}
	})
}

// TestLastHangUpEndsTheProbe also asks again at once: the probe that ends must not
// be the answer.
func TestLastHangUpEndsTheProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := newHanging()
		prober := newHangingProber(t, network, nil)
		ctx, hangUp := context.WithCancel(t.Context())
		first, second := ask(ctx, prober, "a", target), ask(ctx, prober, "b", target)
		synctest.Wait()
		begun := time.Now()
		hangUp()
		for _, result := range []<-chan error{first, second} {
			if err := <-result; !errors.Is(err, context.Canceled) {
				t.Errorf("who hung up got %v", err)
			}
		}
		third := ask(t.Context(), prober, "c", target)
		<-network.ended
		if waited := time.Since(begun); waited != 0 {
			t.Errorf("the connection was given up after %v", waited)
		}
		fourth := ask(t.Context(), prober, "d", target)
		synctest.Wait()
		if n := len(network.begun); n != 2 {
			t.Errorf("%d connections, want one for each pair of callers", n)
		}
		network.release()
		for _, result := range []<-chan error{third, fourth} {
			if err := <-result; err != nil {
				t.Errorf("who asked afterwards got %v", err)
			}
		}
	})
}

func TestDeadlineOfTheCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prober := newHangingProber(t, newHanging(), nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := <-ask(ctx, prober, "a", target); !errors.Is(err, context.DeadlineExceeded) || reasonOf(err) != "" {
			t.Errorf("Probe = %v, want the error of the context", err)
		}
	})
}

func TestProbeTakesFiveSecondsAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prober := newHangingProber(t, newHanging(), nil)
		begun := time.Now()
		err := <-ask(t.Context(), prober, "a", target)
		if waited := time.Since(begun); reasonOf(err) != egress.ReasonTimeout || waited != 5*time.Second {
			t.Errorf("Probe = %v after %v", err, waited)
		}
	})
}

// TestFlightsUnderRace has many callers come and go; the race detector looks on.
func TestFlightsUnderRace(t *testing.T) {
	policy := newStrict()
	policy.Resolver, policy.Dial = answer(publicAddr), new(recorder).Dial
	prober := newProber(t, policy, &egress.ProberOptions{ClientMaxProbes: 1000, ClientProbesPerMinute: 1_000_000})
	var results []<-chan error
	for i := range 500 {
		ctx, cancel := context.WithCancel(t.Context())
		results = append(results, ask(ctx, prober, "client", "https://receiver.example/"))
		if i%3 == 0 {
			go cancel()
		} else {
			defer cancel()
		}
	}
	for _, result := range results {
		if err := <-result; !errors.Is(err, context.Canceled) && !errors.Is(err, errDialled) {
			t.Error(err)
		}
	}
}

// panicking is a resolver that is broken.
type panicking struct{}

func (panicking) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	panic("broken on purpose")
}

// TestPanicReachesTheCaller: the probe runs in a goroutine of its own, where
// nobody could recover what a host's resolver throws.
func TestPanicReachesTheCaller(t *testing.T) {
	policy := newStrict()
	policy.Resolver = panicking{}
	prober := newProber(t, policy, nil)
	for range 2 {
		func() {
			defer func() {
				if value := recover(); value != "broken on purpose" {
					t.Errorf("recovered %v", value)
				}
			}()
			_ = prober.Probe(t.Context(), "client", egress.NewURL("https://receiver.example/"))
			t.Error("no panic")
		}()
	}
}
