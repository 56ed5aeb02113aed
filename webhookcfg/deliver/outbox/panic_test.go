package outbox

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// panics panics in its first calls for an entity.
type panics struct {
	deliver.Resolver
	calls atomic.Int32
	first int32
}

func (p *panics) call(entity string) {
	if entity == "bad" && p.calls.Add(1) <= p.first {
		panic(errors.New("token=secret"))
	}
}

func (p *panics) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	p.call(entity)
	return p.Resolver.Resolve(ctx, client, entity)
}

func (p *panics) Keys(_ context.Context, to deliver.Recipient) ([]deliver.Key, error) {
	p.call(to.Entity)
	return []deliver.Key{deliver.GenerateKey()}, nil
}

// TestPanics: a function of the host that panics ends no process. Its notification is sent once
// it panics no more, and the others of the client don't wait.
func TestPanics(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(w *world, p *panics, opts *Options, sender *deliver.Options){
		"Resolver": func(w *world, p *panics, _ *Options, _ *deliver.Options) { p.first = 3; w.resolver = p },
		"Keys":     func(w *world, p *panics, _ *Options, _ *deliver.Options) { p.first = 2; w.keys = p },
		"Limits": func(_ *world, p *panics, _ *Options, sender *deliver.Options) {
			p.first = 3
			sender.Limits = func(string) (int, int) { p.call("bad"); return 0, 0 }
		},
		"OnResult": func(_ *world, p *panics, _ *Options, sender *deliver.Options) {
			p.first = 2
			sender.OnResult = func(_ context.Context, _, entity, _ string, _ deliver.Result) { p.call(entity) }
		},
		"OnEnd": func(_ *world, p *panics, opts *Options, _ *deliver.Options) {
			p.first = 1000
			opts.OnEnd = func(End) { p.call("bad") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.set("a", "", w.host(1, &peer{takes: time.Millisecond}))
				p := &panics{Resolver: w}
				var opts Options
				var sender deliver.Options
				set(w, p, &opts, &sender)
				n := w.run(opts, sender)
				defer n.stop()
				w.db.enqueue("a", "bad", "m1")
				w.db.enqueue("a", "good", "m2")
				time.Sleep(2 * time.Second)
				if name != "Limits" && len(w.since(map[string]time.Duration{"m2": 0})) != 1 {
					t.Error("the other notification hasn't arrived within two seconds")
				}
				time.Sleep(3 * time.Minute)
				if w.db.waitingNow() > 0 || len(w.since(map[string]time.Duration{"m1": 0})) == 0 {
					t.Error("the notification hasn't arrived")
				}
			})
		})
	}
}

// TestOnResultPanicsAlways: what was delivered isn't sent again.
func TestOnResultPanicsAlways(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{takes: time.Millisecond}))
		n := w.run(Options{}, deliver.Options{OnResult: func(context.Context, string, string, string, deliver.Result) { panic("token=secret") }})
		defer n.stop()
		w.db.enqueue("a", "e", "m")
		time.Sleep(2 * time.Minute)
		if w.arrived() != 1 || w.db.waitingNow() > 0 {
			t.Errorf("it arrived %d times, %d wait", w.arrived(), w.db.waitingNow())
		}
	})
}
