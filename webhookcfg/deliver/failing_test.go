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

// TestFailing: the host sees which webhooks fail or are paused, and can end a pause. The base and an
// override are two webhooks, even if they lead to one host.
func TestFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := &inbox{takes: 100 * time.Millisecond, respond: func(n int) string {
			return []string{"503 Service Unavailable\r\nRetry-After: 60\r\n", "500 Internal Server Error\r\n", "200 OK\r\n"}[min(n-1, 2)]
		}}
		st := configured(t, "http://example.com"+secretPath)
		for _, c := range []webhookcfg.Change{
			webhookcfg.SetChange("acme", webhookcfg.Entity("other"), egress.NewURL("http://example.com/other")),
			webhookcfg.SetChange("globex", webhookcfg.All(), egress.NewURL("http://example.com")),
		} {
			if err := st.Apply(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{PerHost: 1, Policy: in.policy()})}
		start := time.Now()
		want := func(name string, want ...string) {
			t.Helper()
			var got []string
			for f := range s.sender.Failing() {
				d := fmt.Sprintf("%s %s %s, %d failures", f.Client, f.Scope, f.HostPort, f.Failures)
				if !f.PausedUntil.IsZero() {
					d += fmt.Sprint(" until ", f.PausedUntil.Sub(start))
				}
				got = append(got, d)
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("%s:\n got %s\nwant %s", name, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
			}
		}
		base := fmt.Sprintf("acme %s example.com:80, 1 failures until 1m0.1s", webhookcfg.All())
		other := fmt.Sprintf("acme %s example.com:80, 1 failures", webhookcfg.Entity("other"))
		want("at first")
		s.sender.Send(t.Context(), "acme", "e", message)
		want("paused", base)
		s.sender.Send(t.Context(), "acme", "other", message)
		s.start(t.Context(), "other", "underway")
		want("under way", base, other)
		time.Sleep(in.takes)
		synctest.Wait()
		want("succeeded", base)
		s.start(t.Context(), "other", "first")
		want("busy", base)
		s.wait()

		check(t, "paused", s.sender.Send(t.Context(), "acme", "e", message), deliver.Deferred, deliver.ReasonPaused)
		check(t, "another client", s.sender.Send(t.Context(), "globex", "e", message), deliver.Delivered, "")
		s.sender.Resume("globex", webhookcfg.All())
		s.sender.Resume("acme", webhookcfg.Entity("other"))
		s.sender.Resume("acme", webhookcfg.Entity("e"))
		s.sender.Resume("acme", webhookcfg.Scope{})
		check(t, "still paused", s.sender.Send(t.Context(), "acme", "e", message), deliver.Deferred, deliver.ReasonPaused)
		s.sender.Resume("acme", webhookcfg.All())
		want("resumed")
		check(t, "resumed", s.sender.Send(t.Context(), "acme", "e", message), deliver.Delivered, "")

		s.start(t.Context(), "e", "third")
		s.sender.Resume("acme", webhookcfg.All()) // of a webhook with an attempt, which goes on
		want("resumed under way")
		s.start(t.Context(), "other", "fourth")
		for range s.sender.Failing() {
			s.sender.Resume("acme", webhookcfg.All()) // may be called meanwhile
			break
		}
		s.wait()
		want("at last")
	})
}
