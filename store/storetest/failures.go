package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/interrupt"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// scenario is a client, for trying a change that can fail.
type scenario struct {
	*script
	client string
	state  model
	more   int // overrides that setUp adds
}

// newScenario sets a client up.
func (sc *script) newScenario(client string, more int) (*scenario, error) {
	r := &scenario{script: sc.fork(0), client: client, state: newModel(), more: more}
	r.setUp()
	return r, r.err
}

// setUp gives the client a base, overrides, and an entity that's off. The additional
// overrides come between the others, both in time and in byte order.
func (r *scenario) setUp() {
	r.apply(webhookcfg.SetChange(r.client, webhookcfg.All(), egress.NewURL(hookURL(0))))
	r.apply(webhookcfg.SetChange(r.client, webhookcfg.Entity("e1"), egress.NewURL(hookURL(1))))
	r.setMore()
	r.apply(webhookcfg.UnsetChange(r.client, webhookcfg.Entity("e2")))
}

// setMore sets the additional overrides, all with the same time.
func (r *scenario) setMore() {
	r.now++
	at := timeOf(r.now)
	r.check(r.concurrently(r.more, func(writer *script, n int) {
		writer.applyAt(webhookcfg.SetChange(r.client, webhookcfg.Entity(moreName(n)), egress.NewURL(hookURL(n))), at)
	}))
	for n := range r.more {
		r.state[moreName(n)] = webhookcfg.Webhook{URL: egress.NewURL(hookURL(n)), Source: override, Since: at}
	}
}

func moreName(n int) string { return fmt.Sprintf("e1-%d", n) }

// expectState checks the client's state. It resolves a sample of the additional overrides.
func (r *scenario) expectState() {
	const sample = 20
	r.expectModel(r.client, r.state, append(r.state.sample(sample), universe...))
}

// apply makes a change that must succeed.
func (r *scenario) apply(c webhookcfg.Change) webhookcfg.Change {
	c = r.script.apply(c)
	r.state = r.state.after(c)
	return c
}

// There are changeKinds kinds of changes. The first kindsOfAll are changes of all.
const (
	changeKinds = 4
	kindsOfAll  = 2
)

// try makes a change that can fail. It returns the states that are allowed afterwards. The
// first one has the whole change.
func (r *scenario) try(ctx context.Context, kind int) (allowed []model, err error) {
	c := [changeKinds]webhookcfg.Change{
		webhookcfg.SetChange(r.client, webhookcfg.All(), egress.NewURL(hookURL(2))),
		webhookcfg.UnsetChange(r.client, webhookcfg.All()),
		webhookcfg.SetChange(r.client, webhookcfg.Entity("e2"), egress.NewURL(hookURL(2))),
		webhookcfg.UnsetChange(r.client, webhookcfg.Entity("e1")),
	}[kind]
	r.now++
	c.Time = timeOf(r.now)
	allowed = []model{r.state.after(c)}
	if err = r.send(ctx, c, "try to "+describeChange(c)); err != nil {
		r.check(holdsNoURL(err))
		allowed = append(allowed, r.state)
	}
	return allowed, err
}

// expectOneOf checks that the client has one of the states. A change that's still in progress
// would look partial, so it makes another change first. If there are several handles, this
// one goes through another handle, as does the next one.
func (r *scenario) expectOneOf(allowed ...model) error {
	fence := r.apply(webhookcfg.SetChange(r.client, webhookcfg.Entity("e10"), egress.NewURL(hookURL(3))))
	r.turn++
	if r.err != nil {
		return r.err
	}
	var all []error
	for _, state := range allowed {
		r.state, r.err = state.after(fence), nil
		if r.expectState(); r.err == nil {
			return nil
		}
		all = append(all, r.err)
	}
	return fmt.Errorf("a change must be whole, or absent if Apply returned an error, but the state fits neither: %w", errors.Join(all...))
}

// interrupted checks that a change is whole or absent if its context ends meanwhile. It does
// so for every kind of change with many overrides, and for changes of all with a crowd of
// them, and ends the context each time that the store uses it.
func interrupted(sc *script) error {
	var all []*scenario
	for _, tried := range []struct {
		kinds, overrides int
		successes        int // stop after so many: the store may use ctx again after it has made the change
	}{{changeKinds, 60, 5}, {kindsOfAll, sc.crowd(), 1}} {
		for kind := range tried.kinds {
			r, err := sc.newScenario(fmt.Sprintf("cut-%d-%d", kind, tried.overrides), tried.overrides)
			if err != nil {
				return err
			}
			if err := r.interrupt(kind, tried.successes); err != nil {
				return err
			}
			all = append(all, r)
		}
	}
	return unchanged(all)
}

// interrupt ends a change's context when the store first uses it, then when it uses it for
// the second time, and so on, until the change has been made a number of times.
func (r *scenario) interrupt(kind, successes int) error {
	for call, made := 1, 0; call <= interrupt.Most; call++ {
		over := interrupt.At(r.ctx, call)
		allowed, err := r.try(over, kind)
		over.Cancel()
		if err == nil {
			made++
		}
		if err := r.expectOneOf(allowed...); err != nil {
			return fmt.Errorf("ctx ended when the store called ctx.Err or ctx.Done (call %d): %w", call, err)
		}
		if !over.Ended() || made == successes {
			break
		}
		if r.state[unnamed].URL.Reveal() != hookURL(0) { // the change has dropped all overrides
			r.setUp()
		}
	}
	return nil
}

// interruptedCrash interrupts a change and then opens the store again. From then on, the
// change must be whole or absent.
func interruptedCrash(sc *script) error {
	const crashes = 16 // at most, for each kind of change
	var all []*scenario
	for kind := range changeKinds {
		r, err := sc.newScenario(fmt.Sprintf("crash-%d", kind), 0)
		if err != nil {
			return err
		}
		for call, interrupted := 1, true; call <= crashes && interrupted; call++ {
			over := interrupt.At(sc.ctx, call)
			allowed, _ := r.try(over, kind)
			over.Cancel()
			r.reopen()
			if err := r.expectOneOf(allowed...); err != nil {
				return fmt.Errorf("ctx ended when the store called ctx.Err or ctx.Done (call %d), and then came a crash: %w", call, err)
			}
			interrupted = over.Ended()
			r.setUp()
		}
		sc.Store, sc.handles = r.Store, r.handles
		all = append(all, r)
	}
	for _, r := range all {
		r.handles = sc.handles
	}
	return unchanged(all)
}

// unchanged finds changes that take effect after we've checked their outcome.
func unchanged(all []*scenario) error {
	for _, r := range all {
		if r.expectState(); r.err != nil {
			return fmt.Errorf("the state was right just after an interrupted Apply, but has changed by itself since: %w", r.err)
		}
	}
	return nil
}

// burstInterrupted checks the same for many concurrent changes that share a context.
func burstInterrupted(sc *script) error {
	const writers, each, enough = 8, 10, 20
	shared, cancel := context.WithCancel(sc.ctx)
	defer cancel()
	var made atomic.Int64
	all := make([]*scenario, writers)
	err := together(writers, func(n int) (err error) {
		r, err := sc.newScenario(fmt.Sprintf("burst-%d", n), 0)
		if err != nil {
			return err
		}
		all[n] = r
		for step := range each {
			allowed, err := r.try(shared, step%changeKinds)
			if made.Add(1) == enough {
				cancel()
			}
			if err != nil {
				return r.expectOneOf(allowed...)
			}
			r.state = allowed[0]
			r.expectState()
		}
		return r.err
	})
	if err != nil {
		return err
	}
	return unchanged(all)
}

// invalidChanges returns changes that Change.Validate refuses, with what's wrong with them.
func invalidChanges(url egress.URL) map[string]webhookcfg.Change {
	unsetWithURL := webhookcfg.UnsetChange(client, webhookcfg.Entity("e1"))
	unsetWithURL.URL = url
	unsetAllWithURL := webhookcfg.UnsetChange(client, webhookcfg.All())
	unsetAllWithURL.URL = url
	return map[string]webhookcfg.Change{
		"the zero change":               {},
		"neither a set nor an unset":    {Client: client, Scope: webhookcfg.All(), URL: url},
		"a set without a client":        webhookcfg.SetChange("", webhookcfg.Entity("e1"), url),
		"a set of all, of no client":    webhookcfg.SetChange("", webhookcfg.All(), url),
		"a set without an entity":       webhookcfg.SetChange(client, webhookcfg.Entity(""), url),
		"a set without a scope":         webhookcfg.SetChange(client, webhookcfg.Scope{}, url),
		"a set without a URL":           webhookcfg.SetChange(client, webhookcfg.Entity("e1"), egress.URL{}),
		"a set of all without a URL":    webhookcfg.SetChange(client, webhookcfg.All(), egress.URL{}),
		"an unset without a client":     webhookcfg.UnsetChange("", webhookcfg.Entity("e1")),
		"an unset of all, of no client": webhookcfg.UnsetChange("", webhookcfg.All()),
		"an unset without an entity":    webhookcfg.UnsetChange(client, webhookcfg.Entity("")),
		"an unset with a URL":           unsetWithURL,
		"an unset of all, with a URL":   unsetAllWithURL,
	}
}

// invalidRefused checks that invalid changes, and a Resolve without a client or an entity,
// are refused and change nothing.
func invalidRefused(sc *script) error {
	sc.setAll(client, hookURL(1))
	sc.set(client, "e1", hookURL(2))
	sc.unset(client, "e2")
	for defect, c := range invalidChanges(egress.NewURL(hookURL(3))) {
		sc.steps = append(sc.steps, defect)
		sc.check(refused(defect, sc.Store.Apply(sc.ctx, c)))
		sc.expectURL(client, "e1", override, hookURL(2))
		sc.expectOff(client, "e2")
		sc.expectURL(client, unnamed, base, hookURL(1))
	}
	for _, name := range [][2]string{{"", "e1"}, {client, ""}, {"", ""}} {
		_, err := sc.Store.Resolve(sc.ctx, name[0], name[1])
		sc.check(refused(fmt.Sprintf("Resolve(%q, %q)", name[0], name[1]), err))
	}
	return sc.err
}

// endedContexts returns a canceled context, and a context whose deadline has passed.
func endedContexts(ctx context.Context) []context.Context {
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	late, cancelLate := context.WithDeadline(ctx, time.Unix(0, 0))
	cancelLate() // no effect, since late has ended already
	return []context.Context{canceled, late}
}

// endedContext checks that Apply and Resolve return an error if the context ended before the
// call, and that Apply then changes nothing. If it ends during a Resolve, Resolve can return
// an error or the webhook.
func endedContext(sc *script) error {
	for n, over := range endedContexts(sc.ctx) {
		for kind := range changeKinds {
			r, err := sc.newScenario(fmt.Sprintf("ended-%d-%d", n, kind), 0)
			if err != nil {
				return err
			}
			before := r.state
			if _, err := r.try(over, kind); err == nil {
				r.fail("the last call of Apply had an ended ctx and returned no error: check ctx.Err first")
				return r.err
			}
			if err := r.expectOneOf(before); err != nil {
				return err
			}
			if _, err := r.Store.Resolve(over, r.client, "e1"); err == nil {
				return errors.New("a call of Resolve with an ended ctx returned no error: check ctx.Err first")
			}
		}
	}
	sc.set(client, "e1", hookURL(1))
	want := sc.resolve(client, "e1")
	sc.check(interrupt.Each(sc.ctx, func(over context.Context) error {
		hook, err := sc.Store.Resolve(over, client, "e1")
		if err == nil && !same(hook, want) {
			return fmt.Errorf("the result of Resolve is %s, want %s or an error", describe(hook), describe(want))
		}
		return nil
	}))
	return sc.err
}

// errorsHoldNoURL checks that no error text has the path or query of a URL, neither of a
// change's URL nor of a webhook's.
func errorsHoldNoURL(sc *script) error {
	url := egress.NewURL(hookURL(1) + "?token=2")
	for _, c := range invalidChanges(url) {
		sc.check(holdsNoURL(sc.Store.Apply(sc.ctx, c)))
	}
	calls := []func(ctx context.Context) error{
		func(ctx context.Context) error {
			return sc.Store.Apply(ctx, webhookcfg.SetChange(client, webhookcfg.All(), url))
		},
		func(ctx context.Context) error {
			return sc.Store.Apply(ctx, webhookcfg.SetChange(client, webhookcfg.Entity("e1"), url))
		},
		func(ctx context.Context) error { return errorOf(sc.Store.Resolve(ctx, client, "e1")) },
	}
	if l, err := optional[webhookcfg.Lister](sc.Store); err == nil {
		calls = append(calls, func(ctx context.Context) error { return errorOf(l.List(ctx, client, "", 10)) })
	}
	if feed, ok := sc.Store.(cache.Feed); ok {
		calls = append(calls, func(ctx context.Context) error { return errorOf(feed.Changes(ctx, "")) })
	}
	for _, call := range calls {
		checked := func(ctx context.Context) error { return holdsNoURL(call(ctx)) }
		for _, over := range endedContexts(sc.ctx) {
			sc.check(checked(over))
		}
		sc.check(interrupt.Each(sc.ctx, checked))
		sc.check(checked(sc.ctx))
	}
	return sc.err
}

// holdsNoURL returns an error if the text of err has more of a URL than its host.
func holdsNoURL(err error) error {
	if err != nil && strings.Contains(strings.ToLower(fmt.Sprintf("%v %+v %#v", err, err, err)), "hooks.example.com/") {
		return errors.New("the text of an error has the path or query of a URL: print a URL with its String method, which leaves them out")
	}
	return nil
}

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }
