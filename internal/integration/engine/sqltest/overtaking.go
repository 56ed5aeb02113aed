package sqltest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

// overtaking has a change that was given up arrive late, after another that was
// acknowledged: it must not be made any more.
func (e Engine) overtaking(t *testing.T) {
	server := e.Shared.Get(t)
	server.SkipIfExternal(t)
	t.Run("none", func(t *testing.T) {
		admin := e.open(t, server.DSN())
		name := prefix(t, admin)
		direct := e.store(t, admin, name)
		migrate(t, direct)
		open := func(dsn string) linearizable.Store { return e.store(t, e.open(t, dsn), name) }
		var group errgroup.Group
		for kind := range changesOf("") {
			late := newDelayTest(t, server, direct, kind, open)
			group.Go(func() error { return late.holdEach(t.Context()) })
		}
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
	})
	t.Run("by a single statement", func(t *testing.T) {
		direct := e.naiveReplicas(t, server.DSN(), false)[0].(naive)
		const setAll = 1
		late := newDelayTest(t, server, direct, setAll, func(dsn string) linearizable.Store {
			return naive{e.open(t, dsn), direct.sql, false}
		})
		const rounds = 20 // a driver may have the server cancel what it gives up
		for range rounds {
			if err := late.holdEach(t.Context()); errors.Is(err, errOvertaken) {
				return
			}
		}
		t.Error("a change that came after a later one was not caught")
	})
}

var errOvertaken = errors.New("a change that was given up is made after a later one")

// delayTest makes changes of one kind behind a proxy, and others directly.
type delayTest struct {
	kind    int
	proxy   *engine.Proxy
	direct  linearizable.Store
	connect func() linearizable.Store // by new connections through the proxy
}

func newDelayTest(t *testing.T, server *engine.Server, direct linearizable.Store, kind int, open func(dsn string) linearizable.Store) delayTest {
	proxy := engine.NewProxy(t, server.Addr())
	return delayTest{kind, proxy, direct, func() linearizable.Store { return open(server.Via(proxy.Addr())) }}
}

// holdEach makes the change over and over, each time holding another request, until
// there is none left to hold.
func (r delayTest) holdEach(ctx context.Context) error {
	const most = 100
	overtaken := 0
	for n := 1; n <= most; n++ {
		held, first, err := r.holdOne(ctx, n)
		if err != nil {
			return fmt.Errorf("change %d, request %d held: %w", r.kind, n, err)
		}
		if first {
			overtaken++
		}
		if !held {
			break
		}
	}
	if overtaken == 0 {
		return fmt.Errorf("change %d was never on its way when another was made", r.kind)
	}
	return nil
}

// holdOne holds the nth request of a change until the change is given up, and until
// another was acknowledged, or has shown that it has to wait. It reports whether
// there were as many requests, and whether the other change came first.
func (r delayTest) holdOne(ctx context.Context, n int) (held, first bool, err error) {
	client := "late-" + strconv.Itoa(r.kind) + "-" + strconv.Itoa(n)
	base := webhookcfg.Set(client, webhookcfg.All(), egress.NewURL("https://old.example.com/"))
	other := webhookcfg.Set(client, webhookcfg.Entity("e1"), egress.NewURL("https://other.example.com/"))
	if err := r.direct.Apply(ctx, base); err != nil {
		return false, false, err
	}
	st := r.connect()
	earlier := r.proxy.Lost()
	r.proxy.Lose(engine.Requests, engine.Hold, func(i int) bool { return i == n })
	_ = applyFor(ctx, 100*time.Millisecond, st, changesOf(client)[r.kind])
	held = r.proxy.Lost() > earlier
	first = applyFor(ctx, 200*time.Millisecond, r.direct, other) == nil
	r.proxy.Release()
	if !first {
		if err := r.direct.Apply(ctx, other); err != nil {
			return held, first, err
		}
	}
	hook, err := r.direct.Resolve(ctx, client, "e1")
	if err == nil && hook.URL.Reveal() != other.URL.Reveal() {
		err = fmt.Errorf("%w: e1 has %s of %s", errOvertaken, hook.URL, hook.Source)
	}
	return held, held && first, err
}

// applyFor makes a change for which there is little time.
func applyFor(ctx context.Context, timeout time.Duration, st linearizable.Store, c webhookcfg.Change) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return st.Apply(ctx, c)
}
