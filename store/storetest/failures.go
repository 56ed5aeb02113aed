package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// scenario is a client with a base, an override and an entity that is off, for which a
// change is tried that may fail.
type scenario struct {
	ctx    context.Context
	store  webhookcfg.Store
	client string
	now    int64
	state  model
}

// newScenario sets up the client.
func newScenario(ctx context.Context, s webhookcfg.Store, client string) (*scenario, error) {
	r := &scenario{ctx: ctx, store: s, client: client, now: epoch}
	for _, c := range []webhookcfg.Change{
		webhookcfg.Set(client, webhookcfg.All(), egress.NewURL(hookURL(0))),
		webhookcfg.Set(client, webhookcfg.Entity("e1"), egress.NewURL(hookURL(1))),
		webhookcfg.Unset(client, webhookcfg.Entity("e2")),
	} {
		if err := r.apply(r.timed(c)); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// changeKinds is the number of kinds of changes.
const changeKinds = 4

// change returns a change of one of the kinds.
func (r *scenario) change(kind int) webhookcfg.Change {
	c := [changeKinds]webhookcfg.Change{
		webhookcfg.Set(r.client, webhookcfg.All(), egress.NewURL(hookURL(2))),
		webhookcfg.Unset(r.client, webhookcfg.All()),
		webhookcfg.Set(r.client, webhookcfg.Entity("e2"), egress.NewURL(hookURL(2))),
		webhookcfg.Unset(r.client, webhookcfg.Entity("e1")),
	}[kind]
	return r.timed(c)
}

func (r *scenario) timed(c webhookcfg.Change) webhookcfg.Change {
	r.now++
	c.Time = time.Unix(r.now, 0)
	return c
}

// apply makes a change that must succeed.
func (r *scenario) apply(c webhookcfg.Change) error {
	if err := r.store.Apply(r.ctx, c); err != nil {
		return fmt.Errorf("%s: %w", describeChange(c), err)
	}
	r.state = r.state.after(c)
	return nil
}

// checkOutcome returns nil if the client has one of the allowed states. It makes another
// change first, because a change that is still in progress must not be treated as
// partial.
func (r *scenario) checkOutcome(tried webhookcfg.Change, allowed ...model) error {
	var all []error
	fence := r.timed(webhookcfg.Set(r.client, webhookcfg.Entity("e10"), egress.NewURL(hookURL(3))))
	if err := r.apply(fence); err != nil {
		return err
	}
	for _, state := range allowed {
		r.state = state.after(fence)
		err := r.compare()
		if err == nil {
			return nil
		}
		all = append(all, err)
	}
	return fmt.Errorf("after %s, which was interrupted, and %s: %w", describeChange(tried), describeChange(fence), errors.Join(all...))
}

// compare returns nil if the state of the client is unchanged.
func (r *scenario) compare() error { return r.state.compare(r.ctx, r.store, r.client) }

// outcomes returns the states that are allowed after a change that may have failed.
func (r *scenario) outcomes(tried webhookcfg.Change, err error) []model {
	whole := r.state.after(tried)
	if err == nil {
		return []model{whole}
	}
	return []model{whole, r.state}
}

// interrupted requires that a change whose context ends while it is made is whole or
// absent, for every kind of change and whenever the store consults the context.
func interrupted(ctx context.Context, e Env) error {
	const most = 64
	var all []*scenario
	for kind := range changeKinds {
		for call := 1; call <= most; call++ {
			r, err := newScenario(ctx, e.Store, fmt.Sprintf("cut-%d-%d", kind, call))
			if err != nil {
				return err
			}
			all = append(all, r)
			over := interruptAt(ctx, call)
			c := r.change(kind)
			err = e.Store.Apply(over, c)
			over.cancel()
			if err := r.checkOutcome(c, r.outcomes(c, err)...); err != nil {
				return fmt.Errorf("context ended at its call %d: %w", call, err)
			}
			if over.left.Load() > 0 {
				break
			}
		}
	}
	return compareAgain(all)
}

// compareAgain detects changes that were made after their outcome was checked.
func compareAgain(all []*scenario) error {
	for _, r := range all {
		if err := r.compare(); err != nil {
			return fmt.Errorf("some time after an interrupted change: %w", err)
		}
	}
	return nil
}

// burstInterrupted requires the same of many concurrent changes whose common context
// ends.
func burstInterrupted(ctx context.Context, e Env) error {
	const writers, each, enough = 8, 10, 20
	shared, cancel := context.WithCancel(ctx)
	defer cancel()
	var made atomic.Int64
	all := make([]*scenario, writers)
	err := together(writers, func(n int) (err error) {
		r, err := newScenario(ctx, e.Store, fmt.Sprintf("burst-%d", n))
		if err != nil {
			return err
		}
		all[n] = r
		for step := range each {
			c := r.change(step % changeKinds)
			err := e.Store.Apply(shared, c)
			if made.Add(1) == enough {
				cancel()
			}
			if err != nil {
				return r.checkOutcome(c, r.outcomes(c, err)...)
			}
			r.state = r.state.after(c)
			if err := r.compare(); err != nil {
				return fmt.Errorf("after %s: %w", describeChange(c), err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return compareAgain(all)
}

// interruptingContext is a context that ends when Err or Done is called for the nth time.
type interruptingContext struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

// interruptAt returns a context that ends at its nth call.
func interruptAt(ctx context.Context, n int) *interruptingContext {
	inner, cancel := context.WithCancel(ctx)
	c := &interruptingContext{Context: inner, cancel: cancel}
	c.left.Store(int64(n))
	return c
}

// Err implements [context.Context].
func (c *interruptingContext) Err() error {
	c.count()
	return c.Context.Err()
}

// Done implements [context.Context].
func (c *interruptingContext) Done() <-chan struct{} {
	c.count()
	return c.Context.Done()
}

func (c *interruptingContext) count() {
	if c.left.Add(-1) == 0 {
		c.cancel()
	}
}

// invalidChanges returns changes for which Change.Validate fails, by their defect.
func invalidChanges(url egress.URL) map[string]webhookcfg.Change {
	unsetWithURL := webhookcfg.Unset(client, webhookcfg.Entity("e1"))
	unsetWithURL.URL = url
	unsetAllWithURL := webhookcfg.Unset(client, webhookcfg.All())
	unsetAllWithURL.URL = url
	return map[string]webhookcfg.Change{
		"the zero change":               {},
		"neither a set nor an unset":    {Client: client, Scope: webhookcfg.All(), URL: url},
		"a set without a client":        webhookcfg.Set("", webhookcfg.Entity("e1"), url),
		"a set of all, of no client":    webhookcfg.Set("", webhookcfg.All(), url),
		"a set without an entity":       webhookcfg.Set(client, webhookcfg.Entity(""), url),
		"a set without a scope":         webhookcfg.Set(client, webhookcfg.Scope{}, url),
		"a set without a URL":           webhookcfg.Set(client, webhookcfg.Entity("e1"), egress.URL{}),
		"a set of all without a URL":    webhookcfg.Set(client, webhookcfg.All(), egress.URL{}),
		"an unset without a client":     webhookcfg.Unset("", webhookcfg.Entity("e1")),
		"an unset of all, of no client": webhookcfg.Unset("", webhookcfg.All()),
		"an unset without an entity":    webhookcfg.Unset(client, webhookcfg.Entity("")),
		"an unset with a URL":           unsetWithURL,
		"an unset of all, with a URL ":  unsetAllWithURL,
	}
}

// invalidRefused requires that invalid changes, and a Resolve without a client or an
// entity, return ErrInvalidArgument and change nothing.
func invalidRefused(ctx context.Context, e Env) error {
	sc := newScript(ctx, e.Store)
	sc.setAll(client, hookURL(1))
	sc.set(client, "e1", hookURL(2))
	sc.unset(client, "e2")
	if sc.err != nil {
		return sc.err
	}
	for defect, c := range invalidChanges(egress.NewURL(hookURL(3))) {
		if err := refused(defect, e.Store.Apply(ctx, c)); err != nil {
			return err
		}
		sc.steps = append(sc.steps, defect)
		sc.expectURL(client, "e1", override, hookURL(2))
		sc.expectOff(client, "e2")
		sc.expectURL(client, unnamed, base, hookURL(1))
	}
	for _, name := range [][2]string{{"", "e1"}, {client, ""}, {"", ""}} {
		_, err := e.Store.Resolve(ctx, name[0], name[1])
		if err := refused(fmt.Sprintf("resolve of %q / %q", name[0], name[1]), err); err != nil {
			return err
		}
	}
	return sc.err
}

// endedContexts returns a canceled context and one whose deadline has passed.
func endedContexts(ctx context.Context) (all []context.Context, release func()) {
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	late, cancelLate := context.WithDeadline(ctx, time.Unix(0, 0))
	return []context.Context{canceled, late}, cancelLate
}

// endedContext requires that Apply and Resolve fail if the context ended before the
// call, and that Apply then changes nothing.
func endedContext(ctx context.Context, e Env) error {
	ended, release := endedContexts(ctx)
	defer release()
	for n, over := range ended {
		for kind := range changeKinds {
			r, err := newScenario(ctx, e.Store, fmt.Sprintf("ended-%d-%d", n, kind))
			if err != nil {
				return err
			}
			c := r.change(kind)
			if err := e.Store.Apply(over, c); err == nil {
				return fmt.Errorf("%s succeeded with an ended context", describeChange(c))
			}
			if err := r.checkOutcome(c, r.state); err != nil {
				return err
			}
			if _, err := e.Store.Resolve(over, r.client, "e1"); err == nil {
				return errors.New("resolve succeeded with an ended context")
			}
		}
	}
	return nil
}

// errorsHoldNoURL requires that no error text contains the path or the query of a URL.
func errorsHoldNoURL(ctx context.Context, e Env) error {
	const secret = "t0ken-in-the-path"
	url := egress.NewURL("https://hooks.example.com/" + secret + "?" + secret)
	ended, release := endedContexts(ctx)
	defer release()
	var all []error
	for _, c := range invalidChanges(url) {
		all = append(all, e.Store.Apply(ctx, c))
	}
	all = append(all, e.Store.Apply(ctx, webhookcfg.Set(client, webhookcfg.All(), url)))
	for _, over := range ended {
		_, err := e.Store.Resolve(over, client, "e1")
		all = append(all, err, e.Store.Apply(over, webhookcfg.Set(client, webhookcfg.Entity("e1"), url)))
	}
	for _, err := range all {
		if err != nil && strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
			return errors.New("error text contains the path of a URL")
		}
	}
	return nil
}
