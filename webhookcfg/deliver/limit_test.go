package deliver_test

import (
	"fmt"
	"net"
	"net/http"
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
	s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{PerClient: 3, PerReceiver: 2, Patience: -1})
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

// TestPause: a receiver that failed five times in a row is not called for five seconds, and
// one that asks for a pause gets it, but no longer one than allowed.
func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		response := "500 Internal Server Error\r\n"
		requests := 0
		s := newSender(t, configured(t, "http://example.com"+secretPath), keyring{deliver.GenerateKey()}, &deliver.Options{
			MaxPause: time.Minute,
			Policy: policyInMemory(dialTo(afterRequest(func(conn net.Conn) {
				requests++
				fmt.Fprint(conn, "HTTP/1.1 "+response+"Content-Length: 0\r\n\r\n")
			}))),
		})
		send := func(name string, outcome deliver.Outcome, reason deliver.Reason) deliver.Result {
			t.Helper()
			r := s.Send(t.Context(), "acme", "e1", message)
			check(t, name, r, outcome, reason)
			return r
		}
		for range 5 {
			send("failure", deliver.Failed, deliver.ReasonStatus)
		}
		r := send("after five failures", deliver.Deferred, deliver.ReasonPaused)
		if r.Wait < 5*time.Second || r.Wait > 6*time.Second || requests != 5 {
			t.Errorf("wait %v, %d requests", r.Wait, requests)
		}
		time.Sleep(r.Wait)
		response = "204 No Content\r\n"
		send("after the pause", deliver.Delivered, "")
		response = "429 Too Many Requests\r\nRetry-After: 30\r\n"
		send("throttled", deliver.Failed, deliver.ReasonThrottled)
		r = send("asked for", deliver.Deferred, deliver.ReasonPaused)
		if r.Wait < 30*time.Second || r.Wait > 31*time.Second {
			t.Errorf("wait %v", r.Wait)
		}
		time.Sleep(r.Wait)
		response = "429 Too Many Requests\r\nRetry-After: 86400\r\n"
		send("throttled for long", deliver.Failed, deliver.ReasonThrottled)
		if r = send("asked for long", deliver.Deferred, deliver.ReasonPaused); r.Wait > 61*time.Second {
			t.Errorf("wait %v", r.Wait)
		}
		s.CloseIdleConnections()
	})
}

// TestPauseAfterGone: a receiver that wants no messages is paused like any that fails, if no
// Health stops them.
func TestPauseAfterGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSender(t, configured(t, "http://example.com"), keyring{deliver.GenerateKey()}, &deliver.Options{
			Policy: policyInMemory(dialTo(afterRequest(func(conn net.Conn) {
				fmt.Fprint(conn, "HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n")
			}))),
		})
		for range 5 {
			check(t, "gone", s.Send(t.Context(), "acme", "e1", message), deliver.Undeliverable, deliver.ReasonGone)
		}
		check(t, "paused", s.Send(t.Context(), "acme", "e1", message), deliver.Deferred, deliver.ReasonPaused)
	})
}

func TestHostport(t *testing.T) {
	for _, same := range [][]string{
		{"https://example.com/a", "https://example.com:443/b", "HTTPS://EXAMPLE.com?c"},
		{"http://example.com", "http://example.com:80"},
		{"https://example.com:8443/", "https://Example.Com:8443/x"},
		{
			"https://[2001:DB8::1]/", "https://[2001:db8::1]:443/", "https://[2001:db8:0::0:1]/", "https://[2001:0db8::0001]/",
			"https://[2001:db8:0:0:0:0:0:1]/", "https://[2001:db8::0.0.0.1]/",
		},
		{"https://192.0.2.1", "https://[::ffff:192.0.2.1]/", "https://[::ffff:c000:201]:443/"},
	} {
		for _, url := range same[1:] {
			if got, want := deliver.Hostport(egress.NewURL(url)), deliver.Hostport(egress.NewURL(same[0])); got != want {
				t.Errorf("%s: %s, want %s", url, got, want)
			}
		}
	}
	for _, different := range [][2]string{
		{"https://example.com", "http://example.com"},
		{"https://example.com", "https://example.com:8443"},
		{"https://example.com", "https://www.example.com"},
	} {
		if a, b := deliver.Hostport(egress.NewURL(different[0])), deliver.Hostport(egress.NewURL(different[1])); a == b {
			t.Errorf("%v: both are %s", different, a)
		}
	}
}
