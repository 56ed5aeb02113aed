package deliver_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

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
		if r.Wait < 5*time.Second || r.Wait > 10*time.Second || requests != 5 {
			t.Errorf("wait %v, %d requests", r.Wait, requests)
		}
		time.Sleep(r.Wait)
		response = "204 No Content\r\n"
		send("after the pause", deliver.Delivered, "")
		response = "429 Too Many Requests\r\nRetry-After: 30\r\n"
		send("throttled", deliver.Failed, deliver.ReasonThrottled)
		r = send("asked for", deliver.Deferred, deliver.ReasonPaused)
		if r.Wait < 30*time.Second || r.Wait > time.Minute {
			t.Errorf("wait %v", r.Wait)
		}
		time.Sleep(r.Wait)
		response = "429 Too Many Requests\r\nRetry-After: 86400\r\n"
		send("throttled for long", deliver.Failed, deliver.ReasonThrottled)
		if r = send("asked for long", deliver.Deferred, deliver.ReasonPaused); r.Wait > 2*time.Minute {
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

// TestPauseOfTheSetting: a webhook that was set after the ones that failed ends the pause of its
// receiver, whichever kind of pause it is, and nothing else does.
func TestPauseOfTheSetting(t *testing.T) {
	for name, response := range map[string]string{
		"failures":  "500 Internal Server Error\r\n",
		"asked for": "503 Service Unavailable\r\nRetry-After: 60\r\n",
	} {
		synctest.Test(t, func(t *testing.T) {
			in, st := &inbox{respond: func(int) string { return response }}, store.NewMemory()
			setAt := func(at int, scope webhookcfg.Scope) {
				hooktest.Apply(t, st, hooktest.At(at, webhookcfg.SetChange("acme", scope, egress.NewURL("http://example.com"))))
			}
			setAt(1, webhookcfg.Entity("old"))
			setAt(2, webhookcfg.All())
			setAt(2, webhookcfg.Entity("e"))
			setAt(1, webhookcfg.Entity("old"))
			s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy()})
			for range 5 {
				s.Send(t.Context(), "acme", "e", message)
			}
			check(t, name, s.Send(t.Context(), "acme", "e", message), deliver.Deferred, deliver.ReasonPaused)
			check(t, name+", an older webhook", s.Send(t.Context(), "acme", "old", message), deliver.Deferred, deliver.ReasonPaused)
			setAt(3, webhookcfg.Entity("e"))
			response = "200 OK\r\n"
			check(t, name+", set again", s.Send(t.Context(), "acme", "e", message), deliver.Delivered, "")
			s.CloseIdleConnections()
		})
	}
}

func TestRetryAfter(t *testing.T) {
	var fields []string
	var code int
	r := newReceiver(t, false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Retry-After"] = fields
		w.WriteHeader(code)
	})
	in := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(http.TimeFormat) }
	for _, tt := range []struct {
		name     string
		code     int
		fields   []string
		min, max time.Duration
	}{
		{"none", 429, nil, 0, 0},
		{"seconds", 429, []string{"120"}, 2 * time.Minute, 2 * time.Minute},
		{"seconds of 500", 500, []string{"120"}, 2 * time.Minute, 2 * time.Minute},
		{"seconds of 503", 503, []string{"120"}, 2 * time.Minute, 2 * time.Minute},
		{"zero", 429, []string{"0"}, 0, 0},
		{"date", 429, []string{in(5 * time.Minute)}, 3 * time.Minute, 5 * time.Minute},
		{"old form of a date", 429, []string{time.Now().Add(5 * time.Minute).UTC().Format(time.ANSIC)}, 3 * time.Minute, 5 * time.Minute},
		{"past", 429, []string{in(-time.Hour)}, 0, 0},
		{"beyond the limit", 429, []string{"86400"}, 10 * time.Minute, 10 * time.Minute},
		{"date beyond the limit", 429, []string{in(24 * time.Hour)}, 10 * time.Minute, 10 * time.Minute},
		{"year 9999", 429, []string{"Fri, 31 Dec 9999 23:59:59 GMT"}, 10 * time.Minute, 10 * time.Minute},
		{"overflow of a duration", 429, []string{"9223372037"}, 10 * time.Minute, 10 * time.Minute},
		{"overflow of 63 bits", 429, []string{"9223372036854775808"}, 10 * time.Minute, 10 * time.Minute},
		{"overflow of 64 bits", 429, []string{"99999999999999999999999"}, 10 * time.Minute, 10 * time.Minute},
		{"negative", 429, []string{"-120"}, 0, 0},
		{"sign", 429, []string{"+120"}, 0, 0},
		{"fraction", 429, []string{"1.5"}, 0, 0},
		{"hexadecimal", 429, []string{"0x10"}, 0, 0},
		{"unit", 429, []string{"120s"}, 0, 0},
		{"list", 429, []string{"120, 180"}, 0, 0},
		{"garbage", 429, []string{"soon"}, 0, 0},
		{"empty", 429, []string{""}, 0, 0},
		{"several", 429, []string{"60", "180", "soon", "120"}, 3 * time.Minute, 3 * time.Minute},
		{"of 200", 200, []string{"120"}, 0, 0},
		{"of 301", 301, []string{"120"}, 0, 0},
		{"of 410", 410, []string{"120"}, 0, 0},
	} {
		code, fields = tt.code, tt.fields
		s := newSender(t, configured(t, r.URL), keyring{deliver.GenerateKey()}, &deliver.Options{MaxPause: 10 * time.Minute})
		result := s.Send(t.Context(), "acme", "e1", message)
		if result.Status != tt.code || result.Wait < tt.min || result.Wait > tt.max {
			t.Errorf("%s: status %d, wait %v, want %v to %v", tt.name, result.Status, result.Wait, tt.min, tt.max)
		}
	}
}
