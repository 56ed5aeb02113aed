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
	"time"

	"example.com/go-webhookcfg/internal/interrupt"
	"example.com/go-webhookcfg/store/cache"
)

// cursor follows a feed while a script makes changes.
type cursor struct {
	sc    *script
	feed  cache.Feed
	since string
}

// startCursor starts to follow a feed.
func startCursor(sc *script, feed cache.Feed) (*cursor, error) {
	c := &cursor{sc: sc, feed: feed}
	changes, err := c.next()
	if err == nil && !changes.Reset {
		err = fmt.Errorf("the first call, Changes(\"\"), must return a Reset, but returned the clients %q", changes.Clients)
	}
	return c, err
}

// next makes the next call, and checks that its result is consistent.
func (c *cursor) next() (cache.Changes, error) {
	changes, err := c.feed.Changes(c.sc.ctx, c.since)
	switch {
	case err != nil:
		return changes, fmt.Errorf("Changes(%q) returned the error %w", c.since, err)
	case changes.Next == "":
		return changes, fmt.Errorf("Changes(%q) returned an empty Next, but it must return a cursor for the next call", c.since)
	case changes.Reset && len(changes.Clients) > 0:
		return changes, fmt.Errorf("Changes(%q) returned a Reset with clients, but Clients must be empty then", c.since)
	}
	c.since = changes.Next
	clients := slices.Clone(changes.Clients)
	clear(changes.Clients) // nobody else may see that
	changes.Clients = clients
	return changes, nil
}

// expect checks that the next call reports the clients. It can report others too.
func (c *cursor) expect(clients ...string) {
	if c.sc.err != nil {
		return
	}
	since := c.since
	changes, err := c.next()
	c.sc.check(err)
	named := make(map[string]bool)
	for _, client := range changes.Clients {
		named[client] = true
	}
	for _, client := range clients {
		if c.sc.err == nil && !changes.Reset && !named[client] {
			c.sc.fail("Changes(%q) returned %d clients, %.500q, but must also name %q, which changed, or return a Reset", since, len(changes.Clients), changes.Clients, client)
		}
	}
}

// feedBegins checks that the first call returns a Reset, even if there are changes already.
func feedBegins(sc *script, feed cache.Feed) error {
	_, err := startCursor(sc, feed)
	sc.check(err)
	sc.set(client, "e1", hookURL(1))
	_, err = startCursor(sc, feed)
	sc.check(err)
	return sc.err
}

// changesOf returns changes of every kind. Each of them has an effect.
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

// feedNames checks that the next call reports a change of any kind, regardless of the
// client's name and of the number of other changes.
func feedNames(sc *script, c *cursor) error {
	for _, change := range changesOf(client) {
		sc.set("neighbour", "e1", hookURL(0))
		change(sc)
		c.expect(client)
	}
	names := sc.lookalikes()
	for _, name := range names {
		sc.setAll(name, hookURL(1))
	}
	c.expect(names...)
	sc.set("seldom", "e1", hookURL(1)) // another client's changes must not displace it
	for n := range many {
		sc.set(client, entityName(n), hookURL(n))
	}
	c.expect("seldom", client)
	if len(sc.handles) == 1 { // changes through several handles are no different
		c.expect(sc.setClients()...)
	}
	sc.set("seldom", "e1", hookURL(2))
	c.expect("seldom")
	return sc.err
}

// setClients sets all for more clients than most feeds remember, and returns the clients.
func (sc *script) setClients() []string {
	names := make([]string, sc.fewer(4200))
	sc.check(sc.concurrently(len(names), func(sc *script, n int) {
		names[n] = fmt.Sprint("client ", n)
		sc.setAll(names[n], hookURL(n))
	}))
	return names
}

// feedCursorsReused checks that an old cursor still reports every change since.
func feedCursorsReused(sc *script, c *cursor) error {
	var clients []string
	from := c.since
	for n := range 5 {
		name := fmt.Sprintf("client %d", n)
		clients = append(clients, name)
		sc.set(name, "e1", hookURL(n))
		c.expect(name)
		(&cursor{sc, c.feed, from}).expect(clients...)
	}
	return sc.err
}

// feedUnknownCursor passes cursors that the store never returned. It must return a Reset, or
// at least the change.
func feedUnknownCursor(sc *script, feed cache.Feed) error {
	sc.set(client, "e1", hookURL(1))
	c, err := startCursor(sc, feed)
	sc.check(err)
	for _, since := range []string{
		"0", "-1", "1000000", "99999999999999999999", "x", " ", "'", "/", "-", ".", "é", strings.Repeat("9", 1000),
		c.since + "x", "x" + c.since,
	} {
		(&cursor{sc, feed, since}).expect(client)
	}
	return sc.err
}

// feedReopened checks that a cursor from before the store was reopened misses no change,
// neither an older nor a newer one.
func feedReopened(sc *script, c *cursor) error {
	sc.set("named before", "e1", hookURL(1))
	c.expect("named before")
	for n := range 2 {
		before, after := fmt.Sprintf("before opening %d", n), fmt.Sprintf("after opening %d", n)
		sc.set(before, "e1", hookURL(2))
		sc.reopen()
		sc.set(after, "e1", hookURL(3))
		var err error
		c.feed, err = optional[cache.Feed](sc.Store)
		sc.check(err)
		c.expect(before, after)
	}
	sc.expectAll("after opening the store again")
	return sc.err
}

// feedWaitsForNothing checks that Changes returns soon, even if there's no change. It tries
// several times, because anything can be late on a busy machine, and a slow store may take as
// long as it takes for a change.
func feedWaitsForNothing(sc *script, c *cursor) error {
	const tries, soon = 3, time.Second / 2
	limit := soon
	for range tries {
		sc.set(client, "e1", hookURL(1))
		start := time.Now()
		c.expect(client)
		limit = max(limit, 2*time.Since(start))
		if sc.err != nil {
			return sc.err
		}
		ctx, cancel := context.WithTimeout(sc.ctx, limit)
		_, err := c.feed.Changes(ctx, c.since)
		late := ctx.Err() != nil
		cancel()
		if !late {
			sc.check(err)
			return sc.err
		}
	}
	sc.fail("Changes(%q) hadn't returned after %v, %d times: it must return at once, also without a change", c.since, limit, tries)
	return sc.err
}

// feedEndedContext checks that Changes returns an error if the context ended before the call.
// If it ends during the call, Changes can return an error or every change.
func feedEndedContext(sc *script, c *cursor) error {
	for _, over := range endedContexts(sc.ctx) {
		if _, err := c.feed.Changes(over, c.since); err == nil {
			return errors.New("a call of Changes with an ended ctx returned no error: check ctx.Err first")
		}
	}
	for n := range 3 {
		sc.set(fmt.Sprint("client ", n), "e1", hookURL(n))
	}
	sc.check(interrupt.Each(sc.ctx, func(over context.Context) error {
		changes, err := c.feed.Changes(over, c.since)
		for n := range 3 {
			if name := fmt.Sprint("client ", n); err == nil && !changes.Reset && !slices.Contains(changes.Clients, name) {
				return fmt.Errorf("Changes(%q) returned the clients %.500q, but must also name %q, which changed, or return a Reset or an error", c.since, changes.Clients, name)
			}
		}
		return holdsNoURL(err)
	}))
	return sc.err
}

// feedReader follows a feed while writers make changes, each to a new client.
type feedReader struct {
	*cursor

	calls   atomic.Int64
	writing atomic.Int64 // writers that haven't finished

	mu   sync.Mutex
	made []string // clients whose change was acknowledged
}

// There are at least minChanges changes and minCalls calls, so that fast and slow writers
// make changes between the calls, but no more than maxChanges.
const (
	minChanges, maxChanges = 50, 100
	minCalls               = 100
	feedWriters            = 4
)

// run follows the feed until the writers have finished, and then makes one more call. It
// passes each result to take, with the clients whose changes had been acknowledged before the
// call.
func (f *feedReader) run(take func(changes cache.Changes, made []string) error) error {
	f.writing.Store(feedWriters)
	return together(1+feedWriters, func(n int) error {
		if n > 0 {
			defer f.writing.Add(-1)
			return f.write(n)
		}
		for more := true; more; f.calls.Add(1) {
			more = f.writing.Load() > 0
			made := f.acknowledged()
			changes, err := f.next()
			if err := errors.Join(err, take(changes, made)); err != nil {
				f.calls.Add(minCalls) // let the writers finish
				return err
			}
			runtime.Gosched() // let the writers run
		}
		return nil
	})
}

func (f *feedReader) write(writer int) error {
	sc := f.sc.fork(writer)
	for n := 0; sc.err == nil && (n < minChanges || n < maxChanges && f.calls.Load() < minCalls); n++ {
		name := fmt.Sprintf("client %d of writer %d", n, writer)
		sc.set(name, "e1", hookURL(n))
		f.mu.Lock()
		f.made = append(f.made, name)
		f.mu.Unlock()
		runtime.Gosched() // let the reader run
	}
	return sc.err
}

func (f *feedReader) acknowledged() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.made
}

// feedMissesNothing checks, while writers make changes, that a call reports each change that
// was acknowledged before it, unless an earlier call did.
func feedMissesNothing(_ *script, c *cursor) error {
	named := make(map[string]bool)
	seen := 0
	return (&feedReader{cursor: c}).run(func(changes cache.Changes, made []string) error {
		for _, name := range changes.Clients {
			named[name] = true
		}
		for ; seen < len(made); seen++ {
			if !changes.Reset && !named[made[seen]] {
				return fmt.Errorf("no call of Changes named %q, although its change had been acknowledged before the last one", made[seen])
			}
		}
		return nil
	})
}

// feedNotEarly checks, while writers make changes, that a client reported before its change
// was visible is reported again afterwards.
func feedNotEarly(sc *script, c *cursor) error {
	early := make(map[string]bool)
	err := (&feedReader{cursor: c}).run(func(changes cache.Changes, _ []string) error {
		if changes.Reset {
			clear(early)
		}
		for _, name := range changes.Clients {
			hook, err := sc.Store.Resolve(sc.ctx, name, "e1")
			if err != nil {
				return err
			}
			early[name] = hook.URL.IsZero()
		}
		return nil
	})
	for name, was := range early {
		if was && err == nil {
			err = fmt.Errorf("a call of Changes named %q before Resolve returned its change, and none named it again: report a change only once it's visible", name)
		}
	}
	return err
}
