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
type chain struct {
	ctx    context.Context
	feed   cache.Feed
	cursor string
}

// follow begins a chain.
func follow(ctx context.Context, feed cache.Feed) (*chain, error) {
	c := &chain{ctx: ctx, feed: feed}
	changes, err := c.next()
	if err == nil && !changes.Reset {
		err = fmt.Errorf("the first call gives no Reset, but names %q", changes.Clients)
	}
	return c, err
}

func (c *chain) next() (cache.Changes, error) {
	changes, err := c.feed.Changes(c.ctx, c.cursor)
	switch {
	case err != nil:
		return changes, fmt.Errorf("changes since %q: %w", c.cursor, err)
	case changes.Next == "":
		return changes, fmt.Errorf(`changes since %q: Next is ""`, c.cursor)
	case changes.Reset && len(changes.Clients) > 0:
		return changes, fmt.Errorf("changes since %q: a Reset has clients", c.cursor)
	}
	c.cursor = changes.Next
	return changes, nil
}

// expect wants the next answer to name the clients, among others perhaps.
func (c *chain) expect(clients ...string) error {
	since := c.cursor
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
	if _, err := follow(ctx, feed); err != nil {
		return err
	}
	p := begin(ctx, e.Store)
	p.set(client, "e1", hookURL(1))
	_, err = follow(ctx, feed)
	return errors.Join(p.err, err)
}

// changesOf are changes of every kind to a client, each of which has an effect.
func changesOf(client string) []func(*play) {
	return []func(*play){
		func(p *play) { p.set(client, "e1", hookURL(1)) },
		func(p *play) { p.unset(client, "e1") },
		func(p *play) { p.set(client, "e1", hookURL(1)) },
		func(p *play) { p.set(client, "e1", hookURL(1)) }, // at another time
		func(p *play) { p.setAll(client, hookURL(2)) },
		func(p *play) { p.setAll(client, hookURL(2)) },
		func(p *play) { p.unset(client, "e2") },
		func(p *play) { p.unsetAll(client) },
		func(p *play) { p.setAll(client, hookURL(2)) },
		func(p *play) { p.unsetAll(client) },
	}
}

func feedNames(ctx context.Context, e Env) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	c, err := follow(ctx, feed)
	if err != nil {
		return err
	}
	p := begin(ctx, e.Store)
	for _, change := range changesOf(client) {
		p.set("neighbour", "e1", hookURL(0))
		change(p)
		if err := errors.Join(p.err, c.expect(client)); err != nil {
			return err
		}
	}
	for _, name := range lookalikes() {
		p.setAll(name, hookURL(1))
	}
	if err := errors.Join(p.err, c.expect(lookalikes()...)); err != nil {
		return err
	}
	return c.namesAfterMany(p)
}

// namesAfterMany has one client change a lot beside another one.
func (c *chain) namesAfterMany(p *play) error {
	p.set("seldom", "e1", hookURL(1))
	for n := range many {
		p.set(client, entityName(n), hookURL(n))
	}
	return errors.Join(p.err, c.expect("seldom", client))
}

func feedNamesOthers(ctx context.Context, e Env) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	handles, err := e.handles(3)
	if err != nil {
		return err
	}
	c, err := follow(ctx, feed)
	if err != nil {
		return err
	}
	for n := range 3 * len(handles) {
		p := begin(ctx, handles[n%len(handles)])
		name := fmt.Sprintf("client of handle %d", n)
		p.set(name, "e1", hookURL(n))
		if err := errors.Join(p.err, c.expect(name)); err != nil {
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
	c, err := follow(ctx, feed)
	if err != nil {
		return err
	}
	p, from := begin(ctx, e.Store), c.cursor
	for n := range 5 {
		p.set(fmt.Sprintf("client %d", n), "e1", hookURL(n))
		other := &chain{ctx, feed, from}
		if err := errors.Join(p.err, c.expect(fmt.Sprintf("client %d", n)), other.expectAll(n)); err != nil {
			return err
		}
	}
	return nil
}

func (c *chain) expectAll(last int) error {
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
	p := begin(ctx, e.Store)
	p.set(client, "e1", hookURL(1))
	c, err := follow(ctx, feed)
	if err := errors.Join(p.err, err); err != nil {
		return err
	}
	for _, cursor := range []string{
		"0", "-1", "1000000", "99999999999999999999", "x", " ", "'", "/", "-", ".", "é", strings.Repeat("9", 1000),
		c.cursor + "x", "x" + c.cursor,
	} {
		if err := (&chain{ctx, feed, cursor}).expect(client); err != nil {
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
	c, err := follow(ctx, feed)
	if err != nil {
		return err
	}
	p := begin(ctx, e.Store)
	p.set("named before", "e1", hookURL(1))
	if err := errors.Join(p.err, c.expect("named before")); err != nil {
		return err
	}
	for n := range 2 {
		before, after := fmt.Sprintf("before opening %d", n), fmt.Sprintf("after opening %d", n)
		p.set(before, "e1", hookURL(2))
		p.reopen(e)
		p.set(after, "e1", hookURL(3))
		reopened := Env{Store: p.store}
		if c.feed, err = reopened.feed(); err != nil {
			return err
		}
		if err := errors.Join(p.err, c.expect(before, after)); err != nil {
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
type follower struct {
	ctx   context.Context
	store webhookcfg.Store
	chain *chain

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
func (f *follower) run(e Env, take func(changes cache.Changes, made []string) error) error {
	feed, err := e.feed()
	if err != nil {
		return err
	}
	if f.chain, err = follow(f.ctx, feed); err != nil {
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
			made := f.answered()
			changes, err := f.chain.next()
			if err := errors.Join(err, take(changes, made)); err != nil {
				f.calls.Add(leastCalls) // the writers need not wait
				return err
			}
			runtime.Gosched() // to the writers
		}
		return nil
	})
}

func (f *follower) write(writer int) error {
	p := begin(f.ctx, f.store)
	for n := 0; p.err == nil && (n < leastChanges || n < mostChanges && f.calls.Load() < leastCalls); n++ {
		name := fmt.Sprintf("client %d of writer %d", n, writer)
		p.set(name, "e1", hookURL(n))
		f.mu.Lock()
		f.made = append(f.made, name)
		f.mu.Unlock()
		runtime.Gosched() // to the follower
	}
	return p.err
}

func (f *follower) answered() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made
}

// feedMissesNothing: a call names all whose change was answered before it, unless an
// earlier call did.
func feedMissesNothing(ctx context.Context, e Env) error {
	f := &follower{ctx: ctx, store: e.Store}
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
	f := &follower{ctx: ctx, store: e.Store}
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
