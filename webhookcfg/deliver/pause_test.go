package deliver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestPause: a webhook that failed five times in a row is not called for five seconds, and
// one whose receiver asks for a pause gets it, but no longer one than allowed.
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

// TestPauseAfterGone: a webhook whose receiver wants no messages is paused like any that fails, if no
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

// pauses are the kinds of pauses of a webhook: one response of each is enough for the latter.
var pauses = map[string]string{
	"failures":  "500 Internal Server Error\r\n",
	"asked for": "503 Service Unavailable\r\nRetry-After: 3600\r\n",
}

// TestSharedHost: a webhook that always fails doesn't hinder another one of the client at the same
// host and port, be it the base or an override. A request for a pause is about the one that was
// called, too.
func TestSharedHost(t *testing.T) {
	for name, response := range map[string]string{
		"404":         "404 Not Found\r\n",
		"410":         "410 Gone\r\n",
		"Retry-After": "429 Too Many Requests\r\nRetry-After: 3600\r\n",
	} {
		for _, dead := range []string{"e", "others"} { // the override, or the base
			t.Run(name+" "+dead, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					in, calls := &inbox{takes: 100 * time.Millisecond}, 0
					in.respond = func(n int) string {
						in.mu.Lock()
						defer in.mu.Unlock()
						if in.requests[n-1].URL.Path == "/"+dead {
							calls++
							return response
						}
						return "200 OK\r\n"
					}
					st, alive := configured(t, "http://example.com/others"), "others"
					hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity("e"), egress.NewURL("http://example.com/e")))
					if dead == "others" {
						alive = "e"
					}
					s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{PerHost: 3, Policy: in.policy()})}
					for i := range 20 {
						s.sender.Send(t.Context(), "acme", dead, message)
						check(t, fmt.Sprint("message ", i), s.sender.Send(t.Context(), "acme", alive, message), deliver.Delivered, "")
					}
					check(t, "paused", s.sender.Send(t.Context(), "acme", dead, message), deliver.Deferred, deliver.ReasonPaused)
					if name != "Retry-After" {
						time.Sleep(pause.First)
						s.start(t.Context(), dead, "alone")
						check(t, "at a time", s.sender.Send(t.Context(), "acme", dead, message), deliver.Deferred, deliver.ReasonBusy)
						s.start(t.Context(), alive, "first")
						s.start(t.Context(), alive, "second")
						check(t, "the host's slots", s.sender.Send(t.Context(), "acme", alive, message), deliver.Deferred, deliver.ReasonBusy)
					}
					for id, r := range s.wait() {
						if id != "alone" {
							check(t, id, r, deliver.Delivered, "")
						}
					}
					if most := map[string]int{"404": 6, "410": 6, "Retry-After": 1}[name]; calls != most {
						t.Errorf("%d requests to the one that fails, want %d", calls, most)
					}
				})
			})
		}
	}
}

// TestUnconnected: failing to connect pauses the host for all webhooks there, until there's a
// response: be it one that refuses a message, or the one to a test. No response in time isn't one,
// and it fails the webhook.
func TestUnconnected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var isDead, hangs atomic.Bool
		in := &inbox{respond: func(int) string {
			if hangs.Load() {
				time.Sleep(2 * time.Second)
			}
			return "413 Too Large\r\n"
		}}
		p := in.policy()
		dial := p.Dial
		p.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if isDead.Load() {
				return nil, syscall.ECONNREFUSED
			}
			return dial(ctx, network, address)
		}
		st := configured(t, "http://example.com/base")
		for _, entity := range []string{"e", "f"} {
			hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity(entity), egress.NewURL("http://example.com/"+entity)))
		}
		hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity("elsewhere"), egress.NewURL("http://example.com:8080/")))
		s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Timeout: time.Second, Policy: p})
		send := func(name, entity string, outcome deliver.Outcome, reason deliver.Reason) {
			t.Helper()
			check(t, name, s.Send(t.Context(), "acme", entity, message), outcome, reason)
		}
		isDead.Store(true)
		for _, entity := range []string{"base", "e", "base", "e", "e"} {
			send("dead", entity, deliver.Failed, deliver.ReasonUnreachable)
		}
		send("the base", "base", deliver.Deferred, deliver.ReasonPaused)
		send("an override", "e", deliver.Deferred, deliver.ReasonPaused)
		isDead.Store(false)
		send("another port", "elsewhere", deliver.Undeliverable, deliver.ReasonStatus)
		check(t, "a test", s.Test(t.Context(), "acme", "f", message), deliver.Undeliverable, deliver.ReasonStatus)
		send("a response", "base", deliver.Undeliverable, deliver.ReasonStatus)
		send("a response", "e", deliver.Undeliverable, deliver.ReasonStatus)
		s.CloseIdleConnections()
		time.Sleep(10 * time.Second) // then there may be a test again

		isDead.Store(true)
		for range 4 {
			send("dead again", "base", deliver.Failed, deliver.ReasonUnreachable)
		}
		isDead.Store(false)
		hangs.Store(true)
		send("no response", "e", deliver.Failed, reasonTimeout)
		isDead.Store(true)
		send("dead since five", "base", deliver.Failed, deliver.ReasonUnreachable)
		send("no end by a timeout", "e", deliver.Deferred, deliver.ReasonPaused)
		check(t, "a try", s.Try(t.Context(), "acme", "e", egress.NewURL("http://example.com/new"), message), deliver.Failed, deliver.ReasonUnreachable)
		scopes := map[webhookcfg.Scope]bool{}
		for f := range s.Failing() {
			scopes[f.Scope] = true
			if f.Failures != 5 || f.PausedUntil.IsZero() {
				t.Errorf("fails: %+v", f)
			}
		}
		if len(scopes) != 2 || !scopes[webhookcfg.All()] || !scopes[webhookcfg.Entity("e")] {
			t.Errorf("%v fail", scopes)
		}
		s.Resume("acme", webhookcfg.Entity("e"))
		hangs.Store(false)
		isDead.Store(false)
		send("resumed", "base", deliver.Undeliverable, deliver.ReasonStatus)
		s.CloseIdleConnections()
		time.Sleep(time.Minute) // the receiver notices that its connections are closed
	})
}

// TestTLSAfterTheHandshake: a webhook whose TLS fails after the handshake, since its path requires a client
// certificate, say, is what fails, and not its host: it pauses, and others there go on.
func TestTLSAfterTheHandshake(t *testing.T) {
	var bad atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/bad" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		bad.Add(1)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn.(*tls.Conn).NetConn(), "\x17\x03\x03\x00\x05noise")
		_, _ = io.Copy(io.Discard, conn.(*tls.Conn).NetConn())
	}))
	t.Cleanup(server.Close)
	policy := egress.Development()
	policy.RootCAs = x509.NewCertPool()
	policy.RootCAs.AddCert(server.Certificate())
	st := store.NewMemory()
	hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity("bad"), egress.NewURL(server.URL+"/bad")))
	hooktest.Apply(t, st, webhookcfg.SetChange("acme", webhookcfg.Entity("good"), egress.NewURL(server.URL+"/good")))
	s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: policy})
	var last deliver.Result
	for n := range 10 {
		last = s.Send(t.Context(), "acme", "bad", message)
		if got := s.Send(t.Context(), "acme", "good", message); got.Outcome != deliver.Delivered {
			t.Fatalf("after %d failures of the other webhook: %v", n+1, got)
		}
	}
	if last.Outcome != deliver.Deferred || last.Reason != deliver.ReasonPaused || bad.Load() > 10 { // net/http can repeat one over a connection that was used before
		t.Errorf("after ten failures: %v; %d requests", last, bad.Load())
	}
}

// TestSameURLAgain: the same URL again gets one attempt at once, and at most one such a minute. What's
// known stays until one succeeds, so a client that sets its webhook all the time doesn't have a dead
// receiver called all the time.
func TestSameURLAgain(t *testing.T) {
	for name, response := range pauses {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, st, at := &inbox{takes: time.Second, respond: func(int) string { return response }}, store.NewMemory(), 0
				setAgain := func() {
					at++
					hooktest.Apply(t, st, hooktest.At(at, webhookcfg.SetChange("acme", webhookcfg.Entity("e"), egress.NewURL("http://example.com"+secretPath))))
				}
				setAgain()
				s := &sends{sender: newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy()})}
				failures := func() int {
					for f := range s.sender.Failing() {
						return f.Failures
					}
					return 0
				}
				send := func(name string, outcome deliver.Outcome, reason deliver.Reason) {
					t.Helper()
					check(t, name, s.sender.Send(t.Context(), "acme", "e", message), outcome, reason)
				}
				for range 12 { // until the pause is a long one
					s.sender.Send(t.Context(), "acme", "e", message)
					for f := range s.sender.Failing() {
						time.Sleep(time.Until(f.PausedUntil))
					}
				}
				s.sender.Send(t.Context(), "acme", "e", message)
				send("paused", deliver.Deferred, deliver.ReasonPaused)
				known, trial := failures(), time.Now()
				setAgain()
				s.start(t.Context(), "e", "trial")
				setAgain() // which doesn't hide what comes of it
				send("one at a time", deliver.Deferred, deliver.ReasonBusy)
				time.Sleep(in.takes)
				synctest.Wait()
				if got := failures(); got != known+1 {
					t.Errorf("%d failures in a row, want %d", got, known+1)
				}
				for time.Since(trial) < time.Minute {
					setAgain()
					send("set again soon", deliver.Deferred, deliver.ReasonPaused)
					time.Sleep(100 * time.Millisecond)
				}
				setAgain()
				response = "200 OK\r\n"
				send("a minute later", deliver.Delivered, "")
				s.start(t.Context(), "e", "one")
				s.start(t.Context(), "e", "two")
				for id, r := range s.wait() {
					if id != "trial" {
						check(t, id, r, deliver.Delivered, "")
					}
				}
			})
		})
	}
}

// TestSettingOfAFastClock: another setting with another URL ends the pauses, whether its time is
// later than that of the one before or earlier, and even if it leads to the same host. Another webhook
// there, with a later or an earlier time, doesn't.
func TestSettingOfAFastClock(t *testing.T) {
	for name, pausing := range pauses {
		for order, next := range map[string]int{"later": 2, "earlier": -1000} {
			t.Run(name+", "+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					hooks := map[string]webhookcfg.Webhook{}
					setAt := func(at int, entity, path string) {
						change := hooktest.Set("acme", entity, at)
						hooks[entity] = webhookcfg.Webhook{URL: egress.NewURL("http://example.com" + path), Source: webhookcfg.SourceOverride, Since: change.Time}
					}
					response := pausing
					in := &inbox{respond: func(int) string { return response }}
					s := newSender(t, resolver(func(_ context.Context, _, entity string) (webhookcfg.Webhook, error) {
						return hooks[entity], nil
					}), keyring{deliver.GenerateKey()}, &deliver.Options{Policy: in.policy()})
					defer s.CloseIdleConnections()
					setAt(1, "e", "/first")
					for s.Send(t.Context(), "acme", "e", message).Outcome == deliver.Failed {
					}
					setAt(next, "other", "/first")
					response = "200 OK\r\n"
					check(t, "another webhook", s.Send(t.Context(), "acme", "other", message), deliver.Delivered, "")
					check(t, "paused", s.Send(t.Context(), "acme", "e", message), deliver.Deferred, deliver.ReasonPaused)
					setAt(next, "e", "/second")
					check(t, "set", s.Send(t.Context(), "acme", "e", message), deliver.Delivered, "")

					response = pausing
					for s.Send(t.Context(), "acme", "e", message).Outcome == deliver.Failed {
					}
					check(t, "the next one pauses", s.Send(t.Context(), "acme", "e", message), deliver.Deferred, deliver.ReasonPaused)
					setAt(next+1, "e", "/first")
					response = "200 OK\r\n"
					check(t, "set back", s.Send(t.Context(), "acme", "e", message), deliver.Delivered, "")
					for f := range s.Failing() {
						t.Errorf("fails: %+v", f)
					}
				})
			})
		}
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

// TestStatusOfPause: the status of a webhook that fails has the end of its pause, or of its host's, until
// it's over or the webhook is set again.
func TestStatusOfPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var isDead atomic.Bool
		p := (&inbox{respond: func(int) string { return "429 Too Many Requests\r\nRetry-After: 60\r\n" }}).policy()
		dial := p.Dial
		p.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if isDead.Load() {
				return nil, syscall.ECONNREFUSED
			}
			return dial(ctx, network, address)
		}
		const url = "http://example.com" + secretPath
		st := store.NewMemory()
		setNow := func() {
			t.Helper()
			c := webhookcfg.SetChange("acme", webhookcfg.All(), egress.NewURL(url))
			c.Time = time.Now()
			hooktest.Apply(t, st, c)
		}
		setNow()
		s := newSender(t, st, keyring{deliver.GenerateKey()}, &deliver.Options{Policy: p, Health: newHealth(t, nil, nil)})
		want := func(name, state string, pause time.Duration) {
			t.Helper()
			hook, err := st.Resolve(t.Context(), "acme", "e1")
			if err != nil {
				t.Fatal(err)
			}
			d, err := s.Status(t.Context(), "acme", "e1", hook)
			if got := time.Until(d.PausedUntil); err != nil || d.State != state || d.PausedUntil.IsZero() != (pause == 0) || pause != 0 && got != pause {
				t.Errorf("%s: %+v, %v, want a pause of %v", name, d, err, pause)
			}
		}
		want("at first", "", 0)
		check(t, "throttled", s.Send(t.Context(), "acme", "e1", message), deliver.Failed, deliver.ReasonThrottled)
		want("asked for", "failing", time.Minute)
		time.Sleep(time.Minute)
		want("over", "failing", 0)
		isDead.Store(true)
		s.CloseIdleConnections()
		for range 5 {
			check(t, "dead", s.Send(t.Context(), "acme", "e1", message), deliver.Failed, deliver.ReasonUnreachable)
		}
		want("nobody can connect", "failing", pause.First)
		time.Sleep(time.Second)
		setNow()
		want("set again", "failing", 0)
		s.CloseIdleConnections()
	})
}
