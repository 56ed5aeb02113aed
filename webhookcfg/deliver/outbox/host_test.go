package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestPrepareFails: a Prepare that panics or fails ends no process, and costs no attempts. The
// notification arrives once it works.
func TestPrepareFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(0, &peer{}))
		var calls atomic.Int32
		ends := make(chan End, 1)
		n := w.run(Options{OnEnd: func(e End) { ends <- e }}, deliver.Options{
			Prepare: func(_ context.Context, _, _ string, _ deliver.Message, r *http.Request) error {
				switch calls.Add(1) {
				case 1:
					panic("of the host")
				case 2:
					r.Method = http.MethodPut
				}
				return nil
			},
		})
		defer n.stop()
		w.db.enqueue("a", "e", "m")
		w.await(1, time.Minute)
		if e := <-ends; e.State != Delivered || e.Attempts != 1 || calls.Load() != 3 {
			t.Errorf("%v after %d attempts and %d calls", e.State, e.Attempts, calls.Load())
		}
	})
}

// TestTooLargeForReceiver: a 413 ends a notification at its first attempt. It's given up, so
// that it can be sent again, and doesn't hold up the next one.
func TestTooLargeForReceiver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(0, &peer{respond: func(id string) int {
			if id == "large" {
				return http.StatusRequestEntityTooLarge
			}
			return http.StatusNoContent
		}}))
		ends := make(chan End, 2)
		n := w.run(Options{Order: InOrder, OnEnd: func(e End) { ends <- e }}, deliver.Options{})
		defer n.stop()
		w.db.enqueue("a", "e", "large")
		w.db.enqueue("a", "e", "small")
		w.await(2, time.Minute)
		if e := <-ends; e.State != GivenUp || e.Attempts != 1 || e.Reason != deliver.ReasonStatus {
			t.Errorf("the large one is %v after %d attempts: %s", e.State, e.Attempts, e.Reason)
		}
		if e := <-ends; e.State != Delivered || e.Attempts != 1 {
			t.Errorf("the small one is %v after %d attempts: %s", e.State, e.Attempts, e.Reason)
		}
	})
}

// TestMaxBody: the queue takes no body that its sender wouldn't send.
func TestMaxBody(t *testing.T) {
	t.Parallel()
	sender, err := deliver.New(newWorld(t), testKeys{deliver.GenerateKey()}, &deliver.Options{Policy: egress.Development(), MaxBody: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		sender    *deliver.Sender
		max, want int // 0: an error
	}{
		{nil, 0, 256 << 10},
		{nil, 1 << 20, 1 << 20},
		{nil, -1, 0},
		{sender, 0, 100},
		{sender, 100, 100},
		{sender, 99, 99},
		{sender, 101, 0},
		{sender, -1, 0},
	} {
		box, err := New(new(sql.DB), sqlstore.SQLite(), tt.sender, &Options{MaxBody: tt.max})
		if tt.want == 0 {
			if err == nil {
				t.Errorf("%d is accepted", tt.max)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for size, fits := range map[int]bool{tt.want: true, tt.want + 1: false} {
			n := Notification{Client: "a", Entity: "e", Message: deliver.Message{Body: make([]byte, size)}}
			if _, _, err := box.Statement(n); (err == nil) != fits {
				t.Errorf("MaxBody %d: a body of %d bytes: %v", tt.max, size, err)
			}
		}
	}
}

// hangingResolver never returns the webhooks of some clients.
type hangingResolver struct {
	deliver.Resolver
	hangs func(client string) bool
}

func (h hangingResolver) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if h.hangs(client) {
		<-ctx.Done()
		return webhookcfg.Webhook{}, ctx.Err()
	}
	return h.Resolver.Resolve(ctx, client, entity)
}

// TestResolverHangs: clients whose webhooks can't be looked up delay nobody else. What waits for
// them is sent soon after that works again. While it doesn't, a process can stop.
func TestResolverHangs(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]func(calls int32) bool{
		"always":  func(int32) bool { return true },
		"attempt": func(calls int32) bool { return calls > 1 }, // of one entity each
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const clients = 5
				w := newWorld(t)
				var isRepaired atomic.Bool
				var calls [clients]atomic.Int32
				w.resolver = hangingResolver{w, func(client string) bool {
					number, isBad := strings.CutPrefix(client, "bad")
					return isBad && hangs(calls[number[0]-'0'].Add(1)) && !isRepaired.Load()
				}}
				p := w.run(Options{}, deliver.Options{})
				for c := range clients {
					w.set(fmt.Sprint("bad", c), "", w.host(c, &peer{}))
					for i := range 1 + 50*(c%2) { // some are behind
						w.db.enqueue(fmt.Sprint("bad", c), "e", fmt.Sprint("bad", c, "-", i))
					}
				}
				time.Sleep(time.Second)
				w.set("good", "", w.host(clients, &peer{}))
				for i := range 100 {
					w.db.enqueue("good", fmt.Sprint("e", i), fmt.Sprint("m", i))
				}
				w.await(100, 5*time.Second)
				time.Sleep(time.Minute)
				isRepaired.Store(true)
				w.await(100+clients+50*(clients/2), time.Minute)

				isRepaired.Store(false)
				w.db.enqueue("bad0", "e2", "last")
				time.Sleep(time.Second)
				p.stopWithin(t, 20*time.Second)
			})
		})
	}
}

// TestGraceOfLookups: a process that is told to stop doesn't wait for a webhook for longer than
// its grace.
func TestGraceOfLookups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.resolver = hangingResolver{w, func(string) bool { return true }}
		p := w.run(Options{Grace: 2 * time.Second}, deliver.Options{})
		w.db.enqueue("a", "e", "m")
		time.Sleep(time.Second)
		p.stopWithin(t, 3*time.Second)
	})
}

// TestCauseIsLogged: the log says once a minute why webhooks can't be looked up or keys can't be
// loaded, without the secrets that such an error may quote.
func TestCauseIsLogged(t *testing.T) {
	t.Parallel()
	cause := errors.New("the store is read-only: https://user:secret@example.com/token")
	for name, fail := range map[string]func(w *world){
		"store": func(w *world) { w.resolver = failingResolver{cause} },
		"keys":  func(w *world) { w.keys = failingKeys{cause} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.set("a", "", w.host(1, &peer{}))
				fail(w)
				var log lockedBuffer
				p := w.run(Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}, deliver.Options{})
				defer p.stop()
				for i := range 10 {
					w.db.enqueue("a", fmt.Sprint("e", i), fmt.Sprint("m", i))
				}
				time.Sleep(50 * time.Second)
				text := log.take()
				if n := strings.Count(text, "\n"); n != 1 || !strings.Contains(text, "the store is read-only") || !strings.Contains(text, `client \"a\"`) {
					t.Errorf("logged %d lines, want one that says why:\n%s", n, text)
				}
				if strings.Contains(text, "secret") || strings.Contains(text, "token") {
					t.Errorf("quotes a URL:\n%s", text)
				}
			})
		})
	}
}

type failingResolver struct{ err error }

func (f failingResolver) Resolve(context.Context, string, string) (webhookcfg.Webhook, error) {
	return webhookcfg.Webhook{}, f.err
}

type failingKeys struct{ err error }

func (f failingKeys) Keys(context.Context, deliver.Recipient) ([]deliver.Key, error) {
	return nil, f.err
}
