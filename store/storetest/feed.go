package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// chain follows a feed from one cursor to the next.
type cursor struct {
	ctx   context.Context
	feed  cache.Feed
	since string
}

// follow begins a chain.
func startCursor(ctx context.Context, feed cache.Feed) (*cursor, error) {
	c := &cursor{ctx: ctx, feed: feed}
	changes, err := c.next()
	if err == nil && !changes.Reset {
		err = fmt.Errorf("the first call gives no Reset, but names %q", changes.Clients)
	}
	return c, err
}

func (c *cursor) next() (cache.Changes, error) {
	changes, err := c.feed.Changes(c.ctx, c.since)
	switch {
	case err != nil:
		return changes, fmt.Errorf("changes since %q: %w", c.since, err)
	case changes.Next == "":
		return changes, fmt.Errorf(`changes since %q: Next is ""`, c.since)
	case changes.Reset && len(changes.Clients) > 0:
		return changes, fmt.Errorf("changes since %q: a Reset has clients", c.since)
	}
	c.since = changes.Next
	return changes, nil
}

// expect wants the next answer to name the clients, among others perhaps.
func (c *cursor) expect(clients ...string) error {
	since := c.since
	changes, err := c.next()
	if err != nil {
		return err
	}
	for _, client := range clients {
		if !names(changes, client) {
			return fmt.Errorf("changes since %q name %q, not %q, who changed", since, changes.Clients, client)
		}
	}
	return nil
}

func names(changes cache.Changes, client string) bool {
	return changes.Reset || slices.Contains(changes.Clients, client)
}

func feedBegins(ctx context.Context, e Env) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	if _, err := startCursor(ctx, feed); err != nil {
		return err
	}
	sc := newScript(ctx, e.Store)
	sc.set(client, "e1", hookURL(1))
	_, err = startCursor(ctx, feed)
	return errors.Join(sc.err, err)
}

// changesOf are changes of every kind to a client, each of which has an effect.
func changesOf(client string) []func(*script) {
	return []func(*script){
		func(sc *script) { sc.set(client, "e1", hookURL(1)) },
		func(sc *script) { sc.unset(client, "e1") },
		func(sc *script) { sc.set(client, "e1", hookURL(1)) },
		func(sc *script) { sc.set(client, "e1", hookURL(1)) }, // at another time
		func(sc *script) { sc.setAll(client, hookURL(2)) },
		func(sc *script) { sc.setAll(client, hookURL(2)) },
		func(sc *script) { sc.unset(client, "e2") },
		func(sc *script) { sc.unsetAll(client) },
		func(sc *script) { sc.setAll(client, hookURL(2)) },
		func(sc *script) { sc.unsetAll(client) },
	}
}

func feedNames(ctx context.Context, e Env) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	c, err := startCursor(ctx, feed)
	if err != nil {
		return err
	}
	sc := newScript(ctx, e.Store)
	for _, change := range changesOf(client) {
		sc.set("neighbour", "e1", hookURL(0))
		change(sc)
		if err := errors.Join(sc.err, c.expect(client)); err != nil {
			return err
		}
	}
	for _, name := range lookalikes() {
		sc.setAll(name, hookURL(1))
	}
	if err := errors.Join(sc.err, c.expect(lookalikes()...)); err != nil {
		return err
	}
	return c.namesAfterMany(sc)
}

// namesAfterMany has one client change a lot beside another one.
func (c *cursor) namesAfterMany(sc *script) error {
	sc.set("seldom", "e1", hookURL(1))
	for n := range many {
		sc.set(client, entityName(n), hookURL(n))
	}
	return errors.Join(sc.err, c.expect("seldom", client))
}

func feedNamesPeers(ctx context.Context, e Env) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	handles, err := e.handles(3)
	if err != nil {
		return err
	}
	c, err := startCursor(ctx, feed)
	if err != nil {
		return err
	}
	for n := range 3 * len(handles) {
		sc := newScript(ctx, handles[n%len(handles)])
		name := fmt.Sprintf("client of handle %d", n)
		sc.set(name, "e1", hookURL(n))
		if err := errors.Join(sc.err, c.expect(name)); err != nil {
			return err
		}
	}
	return nil
}

func feedCursorsReused(ctx context.Context, e Env) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	c, err := startCursor(ctx, feed)
	if err != nil {
		return err
	}
	sc, from := newScript(ctx, e.Store), c.since
	for n := range 5 {
		sc.set(fmt.Sprintf("client %d", n), "e1", hookURL(n))
		other := &cursor{ctx, feed, from}
		if err := errors.Join(sc.err, c.expect(fmt.Sprintf("client %d", n)), other.expectAll(n)); err != nil {
			return err
		}
	}
	return nil
}

func (c *cursor) expectAll(last int) error {
	var clients []string
	for n := range last + 1 {
		clients = append(clients, fmt.Sprintf("client %d", n))
	}
	return c.expect(clients...)
}

func feedUnknownCursor(ctx context.Context, e Env) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	sc := newScript(ctx, e.Store)
	sc.set(client, "e1", hookURL(1))
	c, err := startCursor(ctx, feed)
	if err := errors.Join(sc.err, err); err != nil {
		return err
	}
	for _, since := range []string{
		"0", "-1", "1000000", "99999999999999999999", "x", " ", "'", "/", "-", ".", "é", strings.Repeat("9", 1000),
		c.since + "x", "x" + c.since,
	} {
		if err := (&cursor{ctx, feed, since}).expect(client); err != nil {
			return fmt.Errorf("a cursor that was never given: %w", err)
		}
	}
	return nil
}

// feedReopened follows a chain through two openings: before the first, a client
// changed that was not named yet.
func feedReopened(ctx context.Context, e Env) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	if err := e.durable(); err != nil {
		return err
	}
	c, err := startCursor(ctx, feed)
	if err != nil {
		return err
	}
	sc := newScript(ctx, e.Store)
	sc.set("named before", "e1", hookURL(1))
	if err := errors.Join(sc.err, c.expect("named before")); err != nil {
		return err
	}
	for n := range 2 {
		before, after := fmt.Sprintf("before opening %d", n), fmt.Sprintf("after opening %d", n)
		sc.set(before, "e1", hookURL(2))
		sc.reopen(e)
		sc.set(after, "e1", hookURL(3))
		reopened := Env{Store: sc.store}
		if c.feed, err = reopened.feed(); err != nil {
			return err
		}
		if err := errors.Join(sc.err, c.expect(before, after)); err != nil {
			return fmt.Errorf("after the store was opened again: %w", err)
		}
	}
	return nil
}

func feedEndedContext(ctx context.Context, e Env) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	ended, release := endedContexts(ctx)
	defer release()
	for _, over := range ended {
		if _, err := feed.Changes(over, ""); err == nil {
			return errors.New("changes with a context that had ended gave no error")
		}
	}
	return nil
}

// follower follows a feed while others make changes, each to a client of its own.
type feedReader struct {
	ctx    context.Context
	store  webhookcfg.Store
	cursor *cursor

	calls   atomic.Int64
	writing atomic.Int64 // how many writers go on

	mu   sync.Mutex
	made []string // clients whose change was answered
}

// The least that is done, so that neither fast writers nor slow ones leave the feed
// without changes in between its calls, and the most.
const (
	leastChanges, mostChanges = 50, 250
	leastCalls                = 150
	feedWriters               = 4
)

// run follows until the writers are done, and once more. Each answer goes to take,
// with the clients whose change was answered before the call.
func (f *feedReader) run(e Env, take func(changes cache.Changes, made []string) error) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	if f.cursor, err = startCursor(f.ctx, feed); err != nil {
		return err
	}
	f.writing.Store(feedWriters)
	return together(1+feedWriters, func(n int) error {
		if n > 0 {
			defer f.writing.Add(-1)
			return f.write(n)
		}
		for more := true; more; f.calls.Add(1) {
			more = f.writing.Load() > 0
			made := f.acknowledged()
			changes, err := f.cursor.next()
			if err := errors.Join(err, take(changes, made)); err != nil {
				f.calls.Add(leastCalls) // the writers need not wait
				return err
			}
			runtime.Gosched() // to the writers
		}
		return nil
	})
}

func (f *feedReader) write(writer int) error {
	sc := newScript(f.ctx, f.store)
	for n := 0; sc.err == nil && (n < leastChanges || n < mostChanges && f.calls.Load() < leastCalls); n++ {
		name := fmt.Sprintf("client %d of writer %d", n, writer)
		sc.set(name, "e1", hookURL(n))
		f.mu.Lock()
		f.made = append(f.made, name)
		f.mu.Unlock()
		runtime.Gosched() // to the follower
	}
	return sc.err
}

func (f *feedReader) acknowledged() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made
}

// feedMissesNothing: a call names all whose change was answered before it, unless an
// earlier call did.
func feedMissesNothing(ctx context.Context, e Env) error {
	f := &feedReader{ctx: ctx, store: e.Store}
	named := make(map[string]bool)
	seen := 0
	return f.run(e, func(changes cache.Changes, made []string) error {
		for _, name := range changes.Clients {
			named[name] = true
		}
		for ; seen < len(made); seen++ {
			if !changes.Reset && !named[made[seen]] {
				return fmt.Errorf("%q was never named, though its change was answered before the last call", made[seen])
			}
		}
		return nil
	})
}

// feedNotEarly: a client that was named, and then did not have the change yet, is
// named again.
func feedNotEarly(ctx context.Context, e Env) error {
	f := &feedReader{ctx: ctx, store: e.Store}
	early := make(map[string]bool)
	err := f.run(e, func(changes cache.Changes, _ []string) error {
		if changes.Reset {
			clear(early)
		}
		for _, name := range changes.Clients {
			hook, err := e.Store.Resolve(ctx, name, "e1")
			if err != nil {
				return err
			}
			early[name] = hook.URL.IsZero()
		}
		return nil
	})
	for name, was := range early {
		if was && err == nil {
			err = fmt.Errorf("%q was named before its change could be seen, and not again after", name)
		}
	}
	return err
}
