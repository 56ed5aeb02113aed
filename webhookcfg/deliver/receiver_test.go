package deliver_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

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
				d := fmt.Sprintf("%s %s %d, %d failures", r.Client, r.HostPort, r.UnderWay, r.Failures)
				if !r.PausedUntil.IsZero() {
					d += fmt.Sprint(" until ", r.PausedUntil.Sub(start))
				}
				if r.Limit != 1 || s.sender.Receiver(r.Client, r.HostPort) != r {
					t.Errorf("%s: %+v, alone %+v", name, r, s.sender.Receiver(r.Client, r.HostPort))
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
		want("paused", "acme example.com:80 0, 1 failures until 1m0.1s")
		s.sender.Send(t.Context(), "acme", "other", message)
		s.start(t.Context(), "other", "underway")
		want("under way", "acme example.com:80 0, 1 failures until 1m0.1s", "acme example.org:8080 1, 1 failures")
		time.Sleep(in.takes)
		synctest.Wait()
		want("succeeded", "acme example.com:80 0, 1 failures until 1m0.1s")
		s.start(t.Context(), "other", "first")
		want("busy", "acme example.com:80 0, 1 failures until 1m0.1s", "acme example.org:8080 1, 0 failures")
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
		want("resumed under way", "acme example.com:80 1, 0 failures")
		s.start(t.Context(), "other", "fourth")
		for range s.sender.Receivers() {
			s.sender.Resume("acme", "example.com:80") // may be called meanwhile
			break
		}
		s.wait()
		want("at last")
	})
}
