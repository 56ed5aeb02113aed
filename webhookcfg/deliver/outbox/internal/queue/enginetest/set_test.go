package enginetest

import (
	"fmt"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
	shown "example.com/go-webhookcfg/webhookcfg/sent" // sent is a type of this package
)

// TestSetEndsPause: a set or an unset ends a pause at once, and sends what waits, whether it waits for its
// first attempt or for a retry, and whether the process still has the client or not.
func TestSetEndsPause(t *testing.T) {
	t.Parallel()
	const base, override = "", "e"
	for name, tt := range map[string]struct {
		fails string                 // the scope of the webhook that fails
		set   func(s *site, n *node) // to what works
		goes  string                 // the entity of what then goes
	}{
		"base":                     {base, func(s *site, n *node) { s.set("a", base, "93.184.0.2:80"); n.changed("a", base) }, "e"},
		"base at the same host":    {base, func(s *site, n *node) { s.set("a", base, "93.184.0.1:80/good"); n.changed("a", base) }, "e"},
		"override":                 {override, func(s *site, n *node) { s.set("a", override, "93.184.0.2:80"); n.changed("a", override) }, "e"},
		"override instead of base": {base, func(s *site, n *node) { s.set("a", override, "93.184.0.2:80"); n.changed("a", override) }, "e"},
		"base instead of override": {override, func(s *site, n *node) { s.set("a", base, "93.184.0.2:80"); n.changed("a", base) }, "e"},
		"off":                      {override, func(s *site, n *node) { s.unset("a", override); n.changed("a", override) }, "e"},
	} {
		for _, quiet := range []time.Duration{3 * time.Second, 22 * time.Second} {
			t.Run(fmt.Sprint(name, " after ", quiet), func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, s *site) {
					bad := s.peer(0, &peer{respond: func(r request) int {
						if r.path == "/good" {
							return 204
						}
						return 500
					}})
					good := s.peer(1, &peer{})
					if s.set("a", base, good); tt.fails == base {
						s.set("a", base, bad)
					} else {
						s.set("a", tt.fails, bad)
					}
					n := s.run(outbox.Options{Schedule: deliver.Schedule{time.Hour, time.Hour}}, deliver.Options{})
					var ids []string
					for i := range 40 {
						ids = append(ids, fmt.Sprint("m", i))
					}
					s.enqueue("a", tt.goes, ids...)
					s.enqueue("a", "another", "x")
					time.Sleep(quiet)
					if s.count(every) < 5 || s.waiting() < 40 {
						t.Fatalf("%d requests, %d wait: it isn't paused", s.count(every), s.waiting())
					}
					tt.set(s, n)
					s.awaitEnds(40, time.Second)
					state := outbox.Delivered
					if name == "off" {
						state = outbox.Dropped
					}
					if n := len(s.ended(func(e outbox.End) bool { return e.State == state })); n < 40 {
						t.Errorf("%d are %v", n, state)
					}
				})
			})
		}
	}
}

// staleness is how long the sender's copy of the webhooks may lag behind.
const staleness = 15 * time.Second

// TestSetBeforeCopy: the sender's copy of the webhooks learns of a change after the queue, within the
// time that it may lag behind. What waits is sent then, also if nobody had the line.
func TestSetBeforeCopy(t *testing.T) {
	t.Parallel()
	for _, entity := range []string{"", "e"} {
		for _, quiet := range []time.Duration{2 * time.Second, 20 * time.Second} {
			for _, late := range []time.Duration{0, 500 * time.Millisecond, 2900 * time.Millisecond, 14 * time.Second} {
				if quiet > 2*time.Second && late != 2900*time.Millisecond {
					continue
				}
				t.Run(fmt.Sprint(scope(entity), ", ", quiet, " quiet, ", late, " late"), func(t *testing.T) {
					t.Parallel()
					bubble(t, func(t *testing.T, s *site) {
						bad, good := s.peer(0, &peer{respond: does(500)}), s.peer(1, &peer{})
						s.set("a", "", bad)
						n := s.run(outbox.Options{Schedule: deliver.Schedule{time.Hour}}, deliver.Options{})
						s.enqueue("a", "e", "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7")
						time.Sleep(quiet)
						c := webhookcfg.SetChange("a", scope(entity), egress.NewURL("http://"+good))
						c.Time = s.setTime()
						n.changed("a", entity)
						time.Sleep(late)
						s.apply(c)
						t.Log(s.awaitEnds(8, staleness+2*time.Second-late))
					})
				})
			}
		}
	}
}

// TestSetOfOneProcess: a set that one process is told of ends the pause in another one that has the
// client, and so does one that's told to a process that only enqueues.
func TestSetOfOneProcess(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{respond: does(500)}))
		s.run(outbox.Options{}, deliver.Options{})
		s.run(outbox.Options{}, deliver.Options{})
		s.enqueueEach("a", "m", 20)
		time.Sleep(4 * time.Second)
		s.set("a", "", s.peer(1, &peer{}))
		s.box.Changed("a", webhookcfg.All())
		s.awaitEnds(20, time.Second)
	})
}

// TestSameSetAgain: the same URL set again makes one attempt at once, and no other one within a minute
// beyond those that come at the ends of pauses, which go on growing.
func TestSameSetAgain(t *testing.T) {
	t.Parallel()
	for _, entity := range []string{"", "e"} {
		t.Run(scope(entity).String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				host := s.peer(0, &peer{respond: does(500)})
				s.set("a", entity, host)
				n := s.run(outbox.Options{}, deliver.Options{})
				s.enqueue("a", "e", "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9")
				time.Sleep(17 * time.Second) // the pauses of 5 and 10 seconds are over, that of 20 isn't
				again := func(want int, d time.Duration) {
					t.Helper()
					isLater := s.since()
					s.set("a", entity, host)
					n.changed("a", entity)
					time.Sleep(d)
					if got := s.count(isLater); got != want {
						t.Errorf("%v: %d requests in %v, want %d", time.Since(s.start), got, d, want)
					}
				}
				again(1, time.Second)
				again(0, 3*time.Second)
				again(0, 3*time.Second)
				again(0, 30*time.Second) // until the pause of 40 seconds is over
				stats, err := s.box.ClientStats(t.Context(), "a")
				if err != nil || len(stats.Pauses) != 1 || stats.Pauses[0].Failures < 8 {
					t.Errorf("what's known was forgotten: %+v, %v", stats, err)
				}
			})
		})
	}
}

// TestStatusOfPause: the status of a webhook that fails has the end of its pause, in every process, until it
// works or is set again. If it works, a read needs no database. No notification shows an attempt before the end of the pause.
func TestStatusOfPause(t *testing.T) {
	t.Parallel()
	for _, entity := range []string{"", "e"} {
		t.Run(scope(entity).String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				health, err := deliver.NewHealth(nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				p := &peer{respond: does(500)}
				host := s.peer(0, p)
				s.set("a", entity, host)
				n := s.run(outbox.Options{}, deliver.Options{Health: health})
				other := s.run(outbox.Options{}, deliver.Options{Health: health})
				s.enqueue("a", "e", "m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9")
				status := func(n *node, setLater time.Duration) webhookcfg.DeliveryStatus {
					t.Helper()
					hook, err := s.webhooks.Resolve(t.Context(), "a", "e")
					if err != nil {
						t.Fatal(err)
					}
					hook.Since = hook.Since.Add(setLater)
					d, err := n.Status(t.Context(), "a", "e", hook)
					if err != nil {
						t.Fatal(err)
					}
					return d
				}
				expect := func(most time.Duration) {
					t.Helper()
					for _, n := range []*node{n, other} {
						d := status(n, 0)
						if left := time.Until(d.PausedUntil); d.State != "failing" || d.Reason != "status" || left <= 0 || left > most {
							t.Errorf("%+v, %v left", d, left)
						}
						page, err := n.Notifications(t.Context(), "a", shown.Query{Limit: 10})
						if err != nil {
							t.Fatal(err)
						}
						for _, m := range page.Notifications {
							if one, err := n.Notification(t.Context(), "a", m.ID); err != nil || !one.Due.Equal(m.Due) || m.Attempts > 0 && m.Due.Before(d.PausedUntil) {
								t.Errorf("%s is due at %v, on its own page at %v, %v, in a pause until %v", m.ID, m.Due, one.Due, err, d.PausedUntil)
							}
						}
					}
				}
				time.Sleep(4 * time.Second)
				expect(5 * time.Second)
				if d := status(n, time.Microsecond); d.State != "failing" || !d.PausedUntil.IsZero() {
					t.Errorf("set again: %+v", d)
				}
				s.set("a", entity, host)
				n.changed("a", entity)
				time.Sleep(2 * time.Second)
				expect(10 * time.Second)
				if d, err := s.box.Status(t.Context(), "a", "e", webhookcfg.Webhook{}); err != nil || d != (webhookcfg.DeliveryStatus{}) {
					t.Errorf("without a sender: %+v, %v", d, err)
				}
				s.change(func() { p.respond = does(204) })
				s.awaitEnds(10, time.Hour)
				n.stop() // which closes its database
				if d := status(n, 0); d.State != "ok" || !d.PausedUntil.IsZero() {
					t.Errorf("%+v", d)
				}
			})
		})
	}
}

// TestSameSetAfterStop: a webhook that was stopped and is set to the same URL again gets one attempt. If
// that fails, nothing more is sent, and otherwise everything is.
func TestSameSetAfterStop(t *testing.T) {
	t.Parallel()
	for _, entity := range []string{"", "e"} {
		t.Run(scope(entity).String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				health, err := deliver.NewHealth(nil, nil)
				if err != nil {
					t.Fatal(err)
				}
				p := &peer{respond: does(410)}
				host := s.peer(0, p)
				s.set("a", entity, host)
				n := s.run(outbox.Options{}, deliver.Options{Health: health})
				s.enqueue("a", "e", "m0", "m1", "m2")
				s.awaitEnds(3, 5*time.Second)
				again := func(want int, ids ...string) {
					t.Helper()
					isLater, ends := s.since(), len(s.ended(func(outbox.End) bool { return true }))
					s.set("a", entity, host)
					n.changed("a", entity)
					s.enqueue("a", "e", ids...)
					s.awaitEnds(ends+len(ids), 10*time.Second)
					if got := s.count(isLater); got != want {
						t.Errorf("%d requests, want %d", got, want)
					}
				}
				again(1, "m3", "m4", "m5")
				again(0, "m6")
				time.Sleep(time.Minute)
				s.change(func() { p.respond = does(204) })
				again(3, "m7", "m8", "m9")
			})
		})
	}
}

// TestReconciler: one that sets the same URL every two seconds, and says so or not, causes few requests
// to a dead receiver.
func TestReconciler(t *testing.T) {
	t.Parallel()
	for _, isSaid := range []bool{false, true} {
		t.Run(fmt.Sprint("said: ", isSaid), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				host := s.peer(0, &peer{respond: does(500)})
				s.set("a", "e", host)
				n := s.run(outbox.Options{}, deliver.Options{})
				var ids []string
				for i := range 200 {
					ids = append(ids, fmt.Sprint("m", i))
				}
				s.enqueue("a", "e", ids...)
				for range 15 {
					time.Sleep(2 * time.Second)
					s.set("a", "e", host)
					if isSaid {
						n.changed("a", "e")
					}
				}
				if got := s.count(every); got < 6 || got > 8 {
					t.Errorf("%d requests in 30 s, want at most 8", got)
				}
			})
		})
	}
}

// TestSetAgainAndAgain: a client sets its webhook every second, to one of two receivers that fail. What
// that costs doesn't depend on how much waits, and once one of them works, the next set sends what
// waits at once.
func TestSetAgainAndAgain(t *testing.T) {
	t.Parallel()
	var calls []int64
	for _, waiting := range []int{100, 600} {
		t.Run(fmt.Sprint(waiting), func(t *testing.T) {
			bubble(t, func(t *testing.T, s *site) {
				one := &peer{takes: 20 * time.Millisecond, respond: does(503)}
				hosts := []string{s.peer(0, one), s.peer(1, &peer{takes: 20 * time.Millisecond, respond: does(503)})}
				s.set("a", "", hosts[0])
				s.enqueueEach("a", "m", waiting)
				n := s.run(outbox.Options{}, deliver.Options{})
				time.Sleep(5 * time.Second)
				before := n.faults.calls.Load()
				for i := range 10 {
					s.set("a", "", hosts[(i+1)%2])
					n.changed("a", "")
					time.Sleep(time.Second)
				}
				calls = append(calls, n.faults.calls.Load()-before)
				s.change(func() { one.respond = does(204) })
				s.set("a", "", hosts[0])
				n.changed("a", "")
				time.Sleep(time.Second)
				if s.deliveries() == 0 {
					t.Error("nothing was delivered within a second")
				}
			})
		})
	}
	if len(calls) < 2 {
		return
	}
	few, many := calls[0], calls[1]
	t.Logf("%d statements in 10 sets with 100 that wait, %d with 600", few, many)
	if many > few*3/2 {
		t.Errorf("%d statements in 10 sets with 100 that wait, %d with 600", few, many)
	}
}
