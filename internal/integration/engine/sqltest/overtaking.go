package sqltest

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

// overtaking delays a change whose caller has given up, until a later change is acknowledged.
// The delayed change must not take effect then.
func (e Engine) overtaking(t *testing.T) {
	server := e.Shared(t)
	server.SkipIfExternal(t)
	admin := e.direct(t, server.DSN())
	name := prefix(t, admin)
	direct := e.store(t, admin, name)
	migrate(t, direct)
	var group errgroup.Group
	for kind := range e.kinds() {
		proxy := engine.NewProxy(t, server.Addr())
		late := delayTest{kind, proxy, direct, func() (*sqlstore.Store, io.Closer) {
			db := e.Open(t, server.Via(proxy.Addr()))
			return e.store(t, db, name), db
		}}
		group.Go(func() error { return late.holdEach(t.Context()) })
	}
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
}

// delayTest makes one kind of change through a proxy, and other changes directly.
type delayTest struct {
	kind    int
	proxy   *engine.Proxy
	direct  *sqlstore.Store
	connect func() (*sqlstore.Store, io.Closer) // new connections through the proxy
}

// holdEach makes the change repeatedly. Each time it holds another of its requests, until
// another change was made meanwhile. If the held change has locked the row, the other change
// waits in vain. So the other change only gets more time if it was never in time.
func (r delayTest) holdEach(ctx context.Context) error {
	const longest = 2 * time.Minute
	for limit := time.Second; limit < longest; limit *= 8 {
		overtaken, err := r.holdEachFor(ctx, limit)
		if err != nil || overtaken {
			return err
		}
	}
	return fmt.Errorf("change %d was never pending when another was made", r.kind)
}

// holdEachFor reports whether another change was made within the limit while the first was
// pending.
func (r delayTest) holdEachFor(ctx context.Context, limit time.Duration) (overtaken bool, err error) {
	const most = 100
	for n := 1; n <= most; n++ {
		held, first, err := r.holdOne(ctx, n, limit)
		if err != nil {
			return false, fmt.Errorf("change %d, request %d held: %w", r.kind, n, err)
		}
		overtaken = overtaken || first
		if !held {
			break
		}
	}
	return overtaken, nil
}

// holdOne holds the n-th request of a change until its caller has given up and another change
// was acknowledged or timed out. It reports whether there were that many requests, and
// whether the other change came first.
func (r delayTest) holdOne(ctx context.Context, n int, limit time.Duration) (held, first bool, err error) {
	client := "late-" + strconv.Itoa(r.kind) + "-" + strconv.Itoa(n)
	base := webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL("https://old.example.com/"))
	other := webhookcfg.SetChange(client, webhookcfg.Entity("e1"), egress.NewURL("https://other.example.com/"))
	if err := r.direct.Apply(ctx, base); err != nil {
		return false, false, err
	}
	held = r.hold(ctx, n, changesOf(client)[r.kind])
	first = applyFor(ctx, limit, r.direct, other) == nil
	r.proxy.Release()
	if !first {
		if err := r.direct.Apply(ctx, other); err != nil {
			return held, first, err
		}
	}
	hook, err := r.direct.Resolve(ctx, client, "e1")
	if err == nil && hook.URL.Reveal() != other.URL.Reveal() {
		err = fmt.Errorf("an abandoned change took effect after a later one: e1 has %s of %s", hook.URL, hook.Source)
	}
	return held, held && first, err
}

// hold makes a change through the proxy, and gives up when the n-th request is held. It
// returns false if there weren't that many.
func (r delayTest) hold(ctx context.Context, n int, c webhookcfg.Change) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, pool := r.connect()
	defer pool.Close()
	held := false
	r.proxy.Lose(engine.Requests, engine.Hold, func(i int) bool {
		if i == n {
			held = true
			cancel()
		}
		return i == n
	})
	_ = st.Apply(ctx, c)
	r.proxy.Lose(engine.Requests, engine.Hold, nil)
	return held
}

// applyFor makes a change with a timeout.
func applyFor(ctx context.Context, timeout time.Duration, st *sqlstore.Store, c webhookcfg.Change) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return st.Apply(ctx, c)
}
