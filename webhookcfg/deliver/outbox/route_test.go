package outbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// faulty fails for some entities, or hangs.
type faulty struct {
	*world
	isBad func(entity string) bool // until it's repaired
	hangs bool
	calls atomic.Int32 // that failed

	isRepaired atomic.Bool
}

func (f *faulty) fail(ctx context.Context, entity string) error {
	if f.isRepaired.Load() || !f.isBad(entity) {
		return nil
	}
	f.calls.Add(1)
	if f.hangs {
		<-ctx.Done()
	}
	return errors.New("a fault")
}

func (f *faulty) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	if err := f.fail(ctx, entity); err != nil {
		return webhookcfg.Webhook{}, err
	}
	return f.world.Resolve(ctx, client, entity)
}

func isBad(entity string) bool { return strings.HasPrefix(entity, "bad") }

// faultyKeys fails for the webhooks of some entities.
type faultyKeys struct {
	others deliver.Keys
	faulty
}

func (k *faultyKeys) Keys(ctx context.Context, to deliver.Recipient) ([]deliver.Key, error) {
	if err := k.fail(ctx, to.Entity); err != nil {
		return nil, err
	}
	return k.others.Keys(ctx, to)
}

// TestEntityFails: if the store or the keys fail for some entities of a client, the others
// don't wait, and each call that fails is repeated after a while only. Once they work,
// what waited goes out in order.
func TestEntityFails(t *testing.T) {
	t.Parallel()
	for _, bad := range []int{1, 40} {
		for _, what := range []string{"Resolver", "hanging Resolver", "Keys"} {
			if what == "hanging Resolver" && bad > 1 {
				continue
			}
			t.Run(fmt.Sprint(bad, " ", what), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					address := w.host(1, &peer{takes: 10 * time.Millisecond})
					w.set("a", "", address)
					f := &faulty{world: w, isBad: isBad, hangs: what == "hanging Resolver"}
					w.resolver = f
					if what == "Keys" {
						w.resolver = w
						keys := &faultyKeys{others: w.keys, faulty: faulty{world: w, isBad: isBad}}
						w.keys, f = keys, &keys.faulty
					}
					for i := range bad { // the keys only hear of the entity of an override
						w.setFor("a", fmt.Sprint("bad", i), address)
						for n := range 3 {
							w.db.enqueue("a", fmt.Sprint("bad", i), fmt.Sprint("bad", i, "-", n))
						}
					}
					good := sized(200, 2000)
					p := w.run(Options{}, deliver.Options{})
					defer p.stop()
					w.enqueueAll("a", good)
					time.Sleep(40 * time.Second)
					if got := w.arrived(); got != good {
						t.Fatalf("%d of %d others arrived within 40 seconds", got, good)
					}
					before := f.calls.Load()
					time.Sleep(3 * time.Minute)
					if calls := int(f.calls.Load() - before); calls < bad || calls > bad*3*60/15*2 {
						t.Errorf("it was asked %d times in three minutes for %d entities", calls, bad)
					}
					for i := range bad {
						w.db.enqueue("a", fmt.Sprint("bad", i), fmt.Sprint("bad", i, "-3"))
					}
					time.Sleep(time.Second)
					f.isRepaired.Store(true)
					time.Sleep(time.Minute)
					got := make(map[string]string)
					for _, a := range w.all()[good:] {
						entity, n, _ := strings.Cut(a.id, "-")
						got[entity] += n
					}
					for i := range bad {
						if entity := fmt.Sprint("bad", i); got[entity] != "0123" {
							t.Errorf("%s got %q within a minute, want 0123", entity, got[entity])
						}
					}
					time.Sleep(time.Minute)
					if p.has("a") {
						t.Error("the process still has the client")
					}
				})
			})
		}
	}
}

// TestEverythingFails: a store that fails for all entities is asked a few times a second
// for each client, and what waits goes out soon after it works again.
func TestEverythingFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := sized(100, 2000)
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{takes: time.Millisecond}))
		f := &faulty{world: w, isBad: func(string) bool { return true }}
		w.resolver = f
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		w.enqueueAll("a", n)
		time.Sleep(5 * time.Minute)
		if calls := f.calls.Load(); calls < 100 || calls > 3000 {
			t.Errorf("it was asked %d times in five minutes", calls)
		}
		f.isRepaired.Store(true)
		time.Sleep(time.Minute)
		if got := w.arrived(); got != n {
			t.Errorf("%d of %d arrived within a minute", got, n)
		}
	})
}
