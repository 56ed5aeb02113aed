package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"

	"example.com/go-webhookcfg/internal/interrupt"
	"example.com/go-webhookcfg/store/admin"
)

// clientWalk is a walk over the clients of a store.
type clientWalk struct {
	lister admin.ClientLister
	limit  int
	cursor string
	seen   map[string]int // how often each client was listed
	empty  int            // pages without a client so far
	ended  bool
}

func newClientWalk(l admin.ClientLister, limit int) *clientWalk {
	return &clientWalk{lister: l, limit: limit, seen: make(map[string]int)}
}

// step reads the next page, if there's another.
func (w *clientWalk) step(sc *script) {
	if sc.err != nil || w.ended {
		return
	}
	page, err := w.lister.ListClients(sc.ctx, w.cursor, w.limit)
	if err != nil {
		sc.fail("ListClients(%q, %d) returned the error %w", w.cursor, w.limit, err)
		return
	}
	if len(page.Clients) > w.limit {
		sc.fail("ListClients(%q, %d) returned %d clients, more than the limit", w.cursor, w.limit, len(page.Clients))
	}
	for _, client := range page.Clients {
		w.seen[client]++
		switch {
		case client == "":
			sc.fail("ListClients(%q, %d) returned an empty name: list no such client, and share no page with another caller, who may overwrite it", w.cursor, w.limit)
		case w.seen[client] > 1:
			sc.fail("ListClients(%q, %d) returned %q, which this walk already had: a page must start after its cursor, and have each client once", w.cursor, w.limit, client)
		}
	}
	clear(page.Clients) // nobody else may see that
	if len(page.Clients) == 0 {
		w.empty++
	}
	const patience = 2000 // a store may look at only one client per page, and that may have nothing set
	if w.empty > patience {
		sc.fail("ListClients with limit %d returned %d empty pages, and Next is still %q: an empty Next must end the walk at some time", w.limit, w.empty, page.Next)
	}
	w.cursor, w.ended = page.Next, page.Next == ""
}

// finish reads the remaining pages, and checks that each of the clients was listed once.
func (w *clientWalk) finish(sc *script, clients []string) {
	for sc.err == nil && !w.ended {
		w.step(sc)
	}
	for _, client := range clients {
		if sc.err == nil && w.seen[client] == 0 {
			sc.fail("a walk with limit %d didn't list %q", w.limit, client)
		}
	}
}

// eachConfigured gives each client a base, an override, or an entity that's off, and returns
// the clients' names. It leaves others behind that have nothing set any more.
func (sc *script) eachConfigured() []string {
	for n, name := range sc.lookalikes() {
		switch n % 3 {
		case 0:
			sc.setAll(name, hookURL(n))
		case 1:
			sc.set(name, "e1", hookURL(n))
		default:
			sc.setAll(name, hookURL(n))
			sc.unset(name, "e1")
		}
		if n%5 == 0 {
			sc.set("emptied "+name, "e1", hookURL(n))
			sc.unset("emptied "+name, "e1")
		}
	}
	return sc.configured()
}

// clientsWalk checks that pages of any size list every client and then end, even if there are
// many clients or none, and if several callers were the first to change a client.
func clientsWalk(sc *script, l admin.ClientLister) error {
	newClientWalk(l, 10).finish(sc, nil)
	const first = 5 // callers
	sc.check(sc.concurrently(2*sc.crowd(), func(sc *script, n int) { sc.setAll(fmt.Sprint("client ", n), hookURL(n)) }))
	sc.check(sc.concurrently(some*first, func(sc *script, n int) { sc.set(fmt.Sprint("first ", n/first), entityName(n), hookURL(n)) }))
	names := sc.configured()
	for _, limit := range []int{43, len(names) - 1, len(names), len(names) + 1, math.MaxInt} {
		newClientWalk(l, limit).finish(sc, names)
	}
	return sc.err
}

// clientsOnce checks that each handle lists each client once, whether it has a base or an
// override, and even with one client a page.
func clientsOnce(sc *script, _ admin.ClientLister) error {
	names := sc.eachConfigured()
	for _, handle := range sc.handles {
		l, err := optional[admin.ClientLister](handle)
		if err != nil {
			return err
		}
		for _, limit := range []int{1, 3, 1000, 1000} {
			newClientWalk(l, limit).finish(sc, names)
		}
	}
	return sc.err
}

// clientsOnceConcurrently checks the same for clients that always have something set, while
// others come and go before and after them, between two pages.
func clientsOnceConcurrently(sc *script, l admin.ClientLister) error {
	const half = many / 2
	var stay []string
	for n := range half {
		stay = append(stay, fmt.Sprintf("stays %03d", n))
		sc.setAll(stay[n], hookURL(n))
		sc.setAll(fmt.Sprintf("goes %03d", n), hookURL(n))
		sc.set(fmt.Sprintf("zgoes %03d", n), "e1", hookURL(n))
	}
	w := newClientWalk(l, 3)
	for n := range half {
		w.step(sc)
		sc.unsetAll(fmt.Sprintf("goes %03d", n))
		sc.unsetAll(fmt.Sprintf("zgoes %03d", n))
		sc.setAll(fmt.Sprintf("zcomes %03d", n), hookURL(n))
		sc.set(stay[n], "e1", hookURL(n))
		sc.setAll(stay[half-1-n], hookURL(n))
	}
	w.finish(sc, stay)
	return sc.err
}

// clientsInvalid checks that limits below 1 and unknown cursors are refused.
func clientsInvalid(sc *script, l admin.ClientLister) error {
	sc.set(client, "e1", hookURL(1))
	sc.check(errors.Join(
		refused("ListClients with limit 0", errorOf(l.ListClients(sc.ctx, "", 0))),
		refused("ListClients with limit -1", errorOf(l.ListClients(sc.ctx, "", -1))),
		refused("ListClients with a cursor that it never returned", errorOf(l.ListClients(sc.ctx, "\x00 no cursor", 1)))))
	return sc.err
}

// clientsEndedContext checks that ListClients returns an error if the context ended before
// the call. If it ends during the call, ListClients can return an error or all clients.
func clientsEndedContext(sc *script, l admin.ClientLister) error {
	names := sc.eachConfigured()
	for _, over := range endedContexts(sc.ctx) {
		if _, err := l.ListClients(over, "", 10); err == nil {
			return errors.New("a call of ListClients with an ended ctx returned no error: check ctx.Err first")
		}
	}
	sc.check(interrupt.Each(sc.ctx, func(over context.Context) error {
		w := newClientWalk(l, math.MaxInt)
		page, err := l.ListClients(over, "", w.limit)
		if err != nil {
			return holdsNoURL(err)
		}
		for _, client := range page.Clients {
			w.seen[client]++
		}
		w.cursor, w.ended = page.Next, page.Next == ""
		w.finish(sc, names)
		return sc.err
	}))
	return sc.err
}
