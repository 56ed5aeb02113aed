package enginetest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestPanics: a function of the host that panics ends no process. Its notification is sent once it
// panics no more, others of its client don't wait, and the log doesn't quote it.
func TestPanics(t *testing.T) {
	t.Parallel()
	type call func(entity string)
	for name, set := range map[string]func(s *site, call call, o *outbox.Options, so *deliver.Options) (first int32){
		"Resolver": func(s *site, call call, _ *outbox.Options, _ *deliver.Options) int32 {
			s.resolver = lookups{s.webhooks, func(_ context.Context, _, entity string) error { call(entity); return nil }}
			return 2
		},
		"Resolver of the base": func(s *site, call call, _ *outbox.Options, _ *deliver.Options) int32 {
			s.resolver = lookups{s.webhooks, func(_ context.Context, _, entity string) error {
				if entity == "" {
					call("bad")
				}
				return nil
			}}
			return 2
		},
		"Keys": func(s *site, call call, _ *outbox.Options, _ *deliver.Options) int32 {
			s.set("a", "bad", "93.184.0.1:80") // the keys only hear of the entity of an override
			s.keys = loads{s.keys, func(_ context.Context, to deliver.Recipient) error { call(to.Entity); return nil }}
			return 2
		},
		"Limits": func(_ *site, call call, _ *outbox.Options, so *deliver.Options) int32 {
			so.Limits = func(string) (int, int) { call("bad"); return 0, 0 }
			return 2
		},
		"Prepare": func(_ *site, call call, _ *outbox.Options, so *deliver.Options) int32 {
			so.Prepare = func(_ context.Context, _, entity string, _ deliver.Message, _ *http.Request) error {
				call(entity)
				return nil
			}
			return 2
		},
		"OnResult": func(_ *site, call call, _ *outbox.Options, so *deliver.Options) int32 {
			so.OnResult = func(_ context.Context, _, entity, _ string, _ deliver.Result) { call(entity) }
			return 2
		},
		"OnEnd": func(_ *site, call call, o *outbox.Options, _ *deliver.Options) int32 {
			o.OnEnd = func(outbox.End) { call("bad") }
			return 1000
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				s.set("a", "", s.peer(0, &peer{takes: time.Millisecond}))
				var calls, first atomic.Int32
				var o outbox.Options
				var so deliver.Options
				first.Store(set(s, func(entity string) {
					if entity == "bad" && calls.Add(1) <= first.Load() {
						panic(errors.New("token=secret"))
					}
				}, &o, &so))
				n := s.run(o, so)
				s.enqueue("a", "bad", "m1")
				s.enqueue("a", "good", "m2")
				s.awaitRequests(1, 2*time.Second, named("m2"))
				s.awaitRequests(1, time.Minute, named("m1"))
				s.await("an end", time.Second, func() bool { return s.waiting() == 0 })
				if got := s.count(every); got != 2 {
					t.Errorf("%d requests, want 2", got)
				}
				if log := n.log.take(); calls.Load() == 0 || !strings.Contains(log, "panicked") || strings.Contains(log, "secret") {
					t.Errorf("%d calls, logged:\n%s", calls.Load(), log)
				}
			})
		})
	}
}

// TestOnResultPanicsAlways: what was delivered isn't sent again.
func TestOnResultPanicsAlways(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{}))
		s.run(outbox.Options{}, deliver.Options{OnResult: func(context.Context, string, string, string, deliver.Result) { panic("token=secret") }})
		s.enqueue("a", "e", "m")
		time.Sleep(30 * time.Second)
		if s.count(every) != 1 || s.waiting() > 0 {
			s.t.Errorf("it arrived %d times, %d wait", s.count(every), s.waiting())
		}
	})
}

// TestPrepareFails: a Prepare that panics, fails or changes what isn't its own costs no attempts. The
// notification is tried again within seconds, and arrives once it works. Others go on.
func TestPrepareFails(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{}))
		calls := make(map[string]int)
		s.run(outbox.Options{}, deliver.Options{Prepare: func(_ context.Context, _, entity string, _ deliver.Message, r *http.Request) error {
			s.mu.Lock()
			calls[entity]++
			isBad := calls[entity] <= 2
			s.mu.Unlock()
			switch {
			case isBad && entity == "panics":
				panic("of the host")
			case isBad && entity == "changes":
				r.Method = http.MethodPut
			case isBad && entity == "fails":
				return errFault
			}
			return nil
		}})
		bad := []string{"panics", "changes", "fails"}
		for _, entity := range bad {
			s.enqueue("a", entity, entity)
		}
		s.enqueue("a", "good", "good")
		s.awaitRequests(1, time.Second, named("good"))
		s.awaitEnds(1+len(bad), 5*time.Second) // after rests of 1 and 2 seconds, half as long again at most
		if d := s.ended(func(e outbox.End) bool { return isDelivered(e) && e.Attempts == 1 }); len(d) != 1+len(bad) {
			s.t.Errorf("delivered at the first attempt: %+v", d)
		}
		for _, entity := range bad {
			if calls[entity] != 3 {
				s.t.Errorf("%d calls for %s, want 3", calls[entity], entity)
			}
		}
	})
}

// TestOurFailureRests: a notification for which our side fails for a while goes out when it's due
// again, also if that's later than a line is kept without work.
func TestOurFailureRests(t *testing.T) {
	for i := range 8 { // by chance, since SQLite's clock has milliseconds
		bubble(t, func(t *testing.T, s *site) {
			s.set("a", "", s.peer(0, &peer{}))
			var calls atomic.Int32
			s.run(outbox.Options{}, deliver.Options{Prepare: func(context.Context, string, string, deliver.Message, *http.Request) error {
				if calls.Add(1) <= 4 {
					return errFault
				}
				return nil
			}})
			s.enqueue("a", "e", "m")
			t.Log(i, s.awaitEnds(1, 24*time.Second)) // rests of 1, 2, 4 and 8 seconds, half as long again at most
		})
	}
}

// TestPrepareRefuses: a notification that Prepare refuses as invalid is given up at once, and others
// of its entity go on.
func TestPrepareRefuses(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{}))
		s.run(outbox.Options{}, deliver.Options{Prepare: func(_ context.Context, _, _ string, m deliver.Message, _ *http.Request) error {
			if m.ID == "refused" {
				return fmt.Errorf("no such trace: %w", webhookcfg.ErrInvalidArgument)
			}
			return nil
		}})
		s.enqueue("a", "e", "m1", "refused", "m2")
		s.awaitEnds(3, time.Second)
		refused := s.ended(func(e outbox.End) bool { return !isDelivered(e) })
		if s.deliveries() != 2 || len(refused) != 1 || refused[0].State != outbox.GivenUp || refused[0].Reason != deliver.ReasonMessage || refused[0].Attempts != 0 {
			s.t.Errorf("%d delivered, and %+v", s.deliveries(), refused)
		}
	})
}

// TestOurFailuresEnd: what can't be sent because the host's side fails is given up once it has waited
// for as long as the schedule takes and a day, and not before.
func TestOurFailuresEnd(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(s *site, so *deliver.Options){
		"Prepare": func(_ *site, so *deliver.Options) {
			so.Prepare = func(context.Context, string, string, deliver.Message, *http.Request) error { return errFault }
		},
		"Keys": func(s *site, _ *deliver.Options) {
			s.keys = loads{s.keys, func(context.Context, deliver.Recipient) error { return errFault }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				s.set("a", "", s.peer(0, &peer{}))
				s.enqueue("a", "e1", "old")
				s.enqueue("a", "e2", "younger")
				patience := 25 * time.Hour
				s.exec(`UPDATE wh_outbox_message SET enqueued = enqueued - ? WHERE id = 'old'`, (patience + time.Second).Microseconds())
				s.exec(`UPDATE wh_outbox_message SET enqueued = enqueued - ? WHERE id = 'younger'`, (patience - 20*time.Second).Microseconds())
				var so deliver.Options
				set(s, &so)
				s.run(outbox.Options{Schedule: deliver.Schedule{time.Hour}}, so)
				s.awaitEnds(1, 2*time.Second)
				time.Sleep(10 * time.Second)
				if s.waiting() != 1 {
					t.Fatalf("%d wait, want the younger one", s.waiting())
				}
				s.awaitEnds(2, 2*time.Minute) // see TestOurFailureRests
				for _, e := range s.ended(func(outbox.End) bool { return true }) {
					if e.State != outbox.GivenUp || e.Attempts != 0 || e.Reason != deliver.ReasonUnavailable {
						t.Errorf("%+v", e)
					}
				}
			})
		})
	}
}

// TestTooLargeForReceiver: a 413 ends a notification at its first attempt. It's given up, so that it can
// be sent again, and holds up nothing.
func TestTooLargeForReceiver(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{respond: func(r request) int {
			if r.id == "large" {
				return http.StatusRequestEntityTooLarge
			}
			return http.StatusNoContent
		}}))
		s.run(outbox.Options{}, deliver.Options{})
		s.enqueue("a", "e", "large", "small")
		s.awaitEnds(2, time.Second)
		if e := s.ended(func(e outbox.End) bool { return e.State == outbox.GivenUp }); len(e) != 1 || e[0].Attempts != 1 || e[0].Reason != deliver.ReasonStatus {
			s.t.Errorf("the large one: %+v", e)
		}
		if s.deliveries() != 1 {
			s.t.Error("the small one isn't delivered")
		}
	})
}

// TestTooLargeForSender: what another process enqueued, and is too large for the sender, is given up
// unsent, and holds up nothing.
func TestTooLargeForSender(t *testing.T) {
	inSite(t, func(s *site) {
		s.set("a", "", s.peer(0, &peer{}))
		s.run(outbox.Options{}, deliver.Options{MaxBody: 100})
		large := outbox.Notification{Client: "a", Entity: "e", Message: deliver.Message{ID: "large", Body: make([]byte, 101)}}
		if err := s.box.Enqueue(s.t.Context(), s.db, large); err != nil {
			s.t.Fatal(err)
		}
		s.enqueue("a", "e", "small")
		s.awaitEnds(2, time.Second)
		e := s.ended(func(e outbox.End) bool { return e.State == outbox.GivenUp })
		if len(e) != 1 || e[0].Attempts != 0 || e[0].Reason != deliver.ReasonMessage || s.deliveries() != 1 || s.count(named("large")) > 0 {
			s.t.Errorf("the large one: %+v; %d delivered, %d requests", e, s.deliveries(), s.count(every))
		}
	})
}

// TestMaxBody: the queue takes no body that its sender wouldn't send.
func TestMaxBody(t *testing.T) {
	t.Parallel()
	sender, err := deliver.New(lookups{}, fixedKeys{deliver.GenerateKey()}, &deliver.Options{Policy: egress.Development(), MaxBody: 100})
	if err != nil {
		t.Fatal(err)
	}
	for most, sender := range map[int]*deliver.Sender{256 << 10: nil, 100: sender} {
		box, err := outbox.New(new(sql.DB), sqlstore.SQLite(), sender, nil)
		if err != nil {
			t.Fatal(err)
		}
		for size, fits := range map[int]bool{most: true, most + 1: false} {
			n := outbox.Notification{Client: "a", Entity: "e", Message: deliver.Message{Body: make([]byte, size)}}
			if _, _, err := box.Statement(n); (err == nil) != fits || err != nil && !errors.Is(err, outbox.ErrInvalid) {
				t.Errorf("a body of %d bytes, with at most %d: %v", size, most, err)
			}
		}
	}
}

// hang waits until the context ends.
func hang(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestResolverHangs: clients whose webhooks can't be looked up delay nobody else. What waits for them is
// sent soon after that works again. While it doesn't, a process can stop.
func TestResolverHangs(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]func(calls int32) bool{
		"always":  func(int32) bool { return true },
		"attempt": func(calls int32) bool { return calls > 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "attempt" {
			}
			bubble(t, func(t *testing.T, s *site) {
				const bad = 5
				var isRepaired atomic.Bool
				var calls [bad]atomic.Int32
				s.resolver = lookups{s.webhooks, func(ctx context.Context, client, _ string) error {
					if number, isBad := strings.CutPrefix(client, "bad"); isBad && hangs(calls[number[0]-'0'].Add(1)) && !isRepaired.Load() {
						return hang(ctx)
					}
					return nil
				}}
				n := s.run(outbox.Options{}, deliver.Options{})
				total := 0
				for c := range bad {
					client, behind := fmt.Sprint("bad", c), 1+50*(c%2) // some are behind
					s.set(client, "", s.peer(c, &peer{}))
					s.enqueueEach(client, client+"-", behind)
					total += behind
				}
				time.Sleep(time.Second)
				s.set("good", "", s.peer(bad, &peer{}))
				s.enqueueEach("good", "good", 100)
				s.awaitRequests(100, 2*time.Second, named("good"))
				time.Sleep(20 * time.Second)
				isRepaired.Store(true)
				s.awaitEnds(100+total, time.Minute)

				isRepaired.Store(false)
				s.enqueue("bad0", "e2", "last")
				time.Sleep(time.Second)
				n.stopWithin(20 * time.Second)
			})
		})
	}
}

// TestGraceOfLookups: a process that is told to stop doesn't wait for a webhook for longer than its
// grace.
func TestGraceOfLookups(t *testing.T) {
	inSite(t, func(s *site) {
		s.resolver = lookups{s.webhooks, func(ctx context.Context, _, _ string) error { return hang(ctx) }}
		n := s.run(outbox.Options{Grace: 2 * time.Second}, deliver.Options{})
		s.enqueue("a", "e", "m")
		time.Sleep(time.Second)
		n.stopWithin(2*time.Second + 100*time.Millisecond)
	})
}

// TestCauseIsLogged: the log says once a minute why webhooks can't be looked up, keys can't be loaded or
// requests can't be prepared, without the secrets that such an error may quote.
func TestCauseIsLogged(t *testing.T) {
	t.Parallel()
	cause := errors.New("the store is read-only: https://user:secret@example.com/token")
	for name, fail := range map[string]func(s *site, so *deliver.Options){
		"store": func(s *site, _ *deliver.Options) {
			s.resolver = lookups{s.webhooks, func(context.Context, string, string) error { return cause }}
		},
		"keys": func(s *site, _ *deliver.Options) {
			s.keys = loads{s.keys, func(context.Context, deliver.Recipient) error { return cause }}
		},
		"prepare": func(_ *site, so *deliver.Options) {
			so.Prepare = func(context.Context, string, string, deliver.Message, *http.Request) error { return cause }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, s *site) {
				s.set("a", "", s.peer(0, &peer{}))
				var so deliver.Options
				fail(s, &so)
				n := s.run(outbox.Options{}, so)
				s.enqueueEach("a", "m", 10)
				time.Sleep(50 * time.Second)
				text := n.log.take()
				if lines := strings.Count(text, "\n"); lines != 1 || !strings.Contains(text, "the store is read-only") || !strings.Contains(text, `client \"a\"`) {
					t.Errorf("logged %d lines, want one that says why:\n%s", lines, text)
				}
				if strings.Contains(text, "secret") || strings.Contains(text, "token") {
					t.Errorf("quotes a URL:\n%s", text)
				}
			})
		})
	}
}

// TestEntityFails: if the store or the keys fail for some entities of a client, the others don't wait,
// and each call that fails is repeated after a while only. Once they work, what waited goes out.
func TestEntityFails(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		bad  int
		what string
	}{{1, "hanging Resolver"}, {40, "Resolver"}, {40, "Keys"}} {
		t.Run(fmt.Sprint(tt.bad, " ", tt.what), func(t *testing.T) {
			t.Parallel()
			if tt.what == "Keys" {
			}
			bubble(t, func(t *testing.T, s *site) {
				const good = 200
				var isRepaired atomic.Bool
				var calls atomic.Int32
				fault := func(ctx context.Context, entity string) error {
					if isRepaired.Load() || !strings.HasPrefix(entity, "bad") {
						return nil
					}
					if calls.Add(1); tt.what == "hanging Resolver" {
						return hang(ctx)
					}
					return errFault
				}
				if tt.what == "Keys" {
					s.keys = loads{s.keys, func(ctx context.Context, to deliver.Recipient) error { return fault(ctx, to.Entity) }}
				} else {
					s.resolver = lookups{s.webhooks, func(ctx context.Context, _, entity string) error { return fault(ctx, entity) }}
				}
				host := s.peer(0, &peer{takes: 10 * time.Millisecond})
				s.set("a", "", host)
				for i := range tt.bad {
					entity := fmt.Sprint("bad", i)
					s.set("a", entity, host)
					s.enqueue("a", entity, entity+"-0", entity+"-1", entity+"-2")
				}
				s.run(outbox.Options{}, deliver.Options{})
				s.enqueueEach("a", "good", good)
				t.Log("others:", s.awaitRequests(good, 20*time.Second, named("good")))
				time.Sleep(30 * time.Second)
				before := calls.Load()
				time.Sleep(time.Minute)
				if n := int(calls.Load() - before); n < tt.bad || n > tt.bad*20 { // about six, but chance decides
					t.Errorf("it was asked %d times in a minute for %d entities", n, tt.bad)
				}
				isRepaired.Store(true)
				s.awaitEnds(good+3*tt.bad, time.Minute)
				if got := s.count(every); got != good+3*tt.bad {
					t.Errorf("%d requests, want %d", got, good+3*tt.bad)
				}
			})
		})
	}
}

// TestEntityHangs: an entity whose webhook can't be looked up delays the client's others by little,
// however much waits for it.
func TestEntityHangs(t *testing.T) {
	inSite(t, func(s *site) {
		s.resolver = lookups{s.webhooks, func(ctx context.Context, _, entity string) error {
			if entity == "bad" {
				return hang(ctx)
			}
			return nil
		}}
		s.set("a", "", s.peer(0, &peer{}))
		s.set("a", "other", s.peer(0, &peer{}))
		for i := range 20 {
			s.enqueue("a", "bad", fmt.Sprint("bad", i))
		}
		s.enqueue("a", "good", "good")
		s.run(outbox.Options{}, deliver.Options{})
		t.Log(s.awaitRequests(1, 20*time.Second, named("good")))
	})
}

// TestEverythingFails: a store that fails for all entities is asked a few times a second for each
// client, and what waits goes out soon after it works again.
func TestEverythingFails(t *testing.T) {
	inSite(t, func(s *site) {
		const n = 40
		var isRepaired atomic.Bool
		var calls atomic.Int32
		s.resolver = lookups{s.webhooks, func(context.Context, string, string) error {
			if isRepaired.Load() {
				return nil
			}
			calls.Add(1)
			return errFault
		}}
		s.set("a", "", s.peer(0, &peer{}))
		s.run(outbox.Options{}, deliver.Options{})
		s.enqueueEach("a", "m", n)
		time.Sleep(10 * time.Second) // each was looked up once by then
		before := calls.Load()
		time.Sleep(30 * time.Second)
		if n := calls.Load() - before; n < 5 || n > 200 {
			s.t.Errorf("it was asked %d times in half a minute", n)
		}
		isRepaired.Store(true)
		s.awaitEnds(n, time.Minute)
	})
}
