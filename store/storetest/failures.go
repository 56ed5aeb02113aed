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

// scenario is a client for which a change is tried that may fail.
type scenario struct {
	*script
	client string
	state  model
	more   int // number of overrides that setUp adds
}

// newScenario returns the scenario of a client that is set up.
func (sc *script) newScenario(client string, more int) (*scenario, error) {
	r := &scenario{script: sc.fork(0), client: client, more: more}
	r.setUp()
	return r, r.err
}

// setUp gives the client a base, overrides and an entity that is off. The additional
// overrides come between the others, both by time and in byte order.
func (r *scenario) setUp() {
	r.apply(webhookcfg.SetChange(r.client, webhookcfg.All(), egress.NewURL(hookURL(0))))
	r.apply(webhookcfg.SetChange(r.client, webhookcfg.Entity("e1"), egress.NewURL(hookURL(1))))
	r.setMore()
	r.apply(webhookcfg.UnsetChange(r.client, webhookcfg.Entity("e2")))
}

// setMore sets the additional overrides, all at the same time.
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

// expectState checks that the client has the state, for a sample of the additional
// overrides.
func (r *scenario) expectState() {
	const sample = 20
	r.expectModel(r.client, r.state)
	for n := 0; n < r.more; n += max(1, r.more/sample) {
		want, ok := r.state[moreName(n)]
		if !ok {
			want = r.state[unnamed]
		}
		r.expect(r.client, moreName(n), want)
	}
}

// apply makes a change that must succeed.
func (r *scenario) apply(c webhookcfg.Change) webhookcfg.Change {
	c = r.script.apply(c)
	r.state = r.state.after(c)
	return c
}

// changeKinds is the number of kinds of changes. The first kindsOfAll are changes of all.
const (
	changeKinds = 4
	kindsOfAll  = 2
)

// try makes a change of one of the kinds, which may fail. It returns the states that are
// allowed afterwards, the whole change first.
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

// expectOneOf checks that the client has one of the states. It makes another change
// first, because a change that is still in progress must not be treated as partial. With
// several handles, that is made through another one than the change that was tried.
func (r *scenario) expectOneOf(allowed ...model) error {
	fence := r.apply(webhookcfg.SetChange(r.client, webhookcfg.Entity("e10"), egress.NewURL(hookURL(3))))
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
	return errors.Join(all...)
}

// interrupted requires that a change whose context ends while it is made is whole or
// absent, for every kind of change, with many overrides, or with a crowd for changes of
// all, and whenever the store consults the context.
func interrupted(sc *script) error {
	var all []*scenario
	for _, tried := range []struct {
		kinds, overrides int
		successes        int // at most: all that follows may come after the change was made
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

// interrupt interrupts a change of one kind, at each time at which the store consults the
// context, until the change was made a number of times.
func (r *scenario) interrupt(kind, successes int) error {
	for call, made := 1, 0; call <= interrupt.Most; call++ {
		over := interrupt.At(r.ctx, call)
		allowed, err := r.try(over, kind)
		over.Cancel()
		if err == nil {
			made++
		}
		if err := r.expectOneOf(allowed...); err != nil {
			return fmt.Errorf("context ended at its call %d: %w", call, err)
		}
		if !over.Ended() || made == successes {
			break
		}
		if r.state[unnamed].URL.Reveal() != hookURL(0) { // all overrides were dropped
			r.setUp()
		}
	}
	return nil
}

// interruptedCrash requires that a change that was interrupted before the store was opened
// again is whole or absent from then on.
func interruptedCrash(sc *script) error {
	const crashes = 16 // at most, per kind of change
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
				return fmt.Errorf("context ended at its call %d, before a crash: %w", call, err)
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

// unchanged detects changes that were made after their outcome was checked.
func unchanged(all []*scenario) error {
	for _, r := range all {
		if r.expectState(); r.err != nil {
			return fmt.Errorf("some time after an interrupted change: %w", r.err)
		}
	}
	return nil
}

// burstInterrupted requires the same of many concurrent changes whose common context
// ends.
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

// invalidChanges returns changes for which Change.Validate fails, by their defect.
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

// invalidRefused requires that invalid changes, and a Resolve without a client or an
// entity, return ErrInvalidArgument and change nothing.
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
		sc.check(refused(fmt.Sprintf("resolve of %q / %q", name[0], name[1]), err))
	}
	return sc.err
}

// endedContexts returns a canceled context and one whose deadline has passed.
func endedContexts(ctx context.Context) []context.Context {
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	late, cancelLate := context.WithDeadline(ctx, time.Unix(0, 0))
	cancelLate() // has no effect: late has ended
	return []context.Context{canceled, late}
}

// endedContext requires that Apply and Resolve fail if the context ended before the
// call, and that Apply then changes nothing. If the context ends during a Resolve, that
// fails or returns the webhook.
func endedContext(sc *script) error {
	for n, over := range endedContexts(sc.ctx) {
		for kind := range changeKinds {
			r, err := sc.newScenario(fmt.Sprintf("ended-%d-%d", n, kind), 0)
			if err != nil {
				return err
			}
			before := r.state
			if _, err := r.try(over, kind); err == nil {
				r.fail("success with an ended context")
				return r.err
			}
			if err := r.expectOneOf(before); err != nil {
				return err
			}
			if _, err := r.Store.Resolve(over, r.client, "e1"); err == nil {
				return errors.New("resolve succeeded with an ended context")
			}
		}
	}
	sc.set(client, "e1", hookURL(1))
	want := sc.resolve(client, "e1")
	sc.check(interrupt.Each(sc.ctx, func(over context.Context) error {
		hook, err := sc.Store.Resolve(over, client, "e1")
		if err == nil && !same(hook, want) {
			return fmt.Errorf("resolve: %s, want %s or an error", describe(hook), describe(want))
		}
		return nil
	}))
	return sc.err
}

// errorsHoldNoURL requires that no error text contains the path or the query of a URL:
// that of a change or, when reading, that of the webhook.
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

// holdsNoURL returns an error if the text of err has a URL of the suite beyond its host.
func holdsNoURL(err error) error {
	if err != nil && strings.Contains(strings.ToLower(fmt.Sprintf("%v %+v %#v", err, err, err)), "hooks.example.com/") {
		return errors.New("an error text contains the path of a URL")
	}
	return nil
}

// errorOf returns the error of a call.
func errorOf[T any](_ T, err error) error { return err }
