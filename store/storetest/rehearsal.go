package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// rehearsal is a client with a base, an override and an "off", on whom a change
// is tried that may fail.
type rehearsal struct {
	ctx    context.Context
	store  webhookcfg.Store
	client string
	now    int64
	state  model
}

func rehearse(ctx context.Context, s webhookcfg.Store, client string) (*rehearsal, error) {
	r := &rehearsal{ctx: ctx, store: s, client: client, now: epoch}
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

// changeKinds is how many kinds of changes there are.
const changeKinds = 4

// change is what is tried, of one of the kinds.
func (r *rehearsal) change(kind int) webhookcfg.Change {
	c := [changeKinds]webhookcfg.Change{
		webhookcfg.Set(r.client, webhookcfg.All(), egress.NewURL(hookURL(2))),
		webhookcfg.Unset(r.client, webhookcfg.All()),
		webhookcfg.Set(r.client, webhookcfg.Entity("e2"), egress.NewURL(hookURL(2))),
		webhookcfg.Unset(r.client, webhookcfg.Entity("e1")),
	}[kind]
	return r.timed(c)
}

func (r *rehearsal) timed(c webhookcfg.Change) webhookcfg.Change {
	r.now++
	c.Time = time.Unix(r.now, 0)
	return c
}

// apply makes a change that must not fail.
func (r *rehearsal) apply(c webhookcfg.Change) error {
	if err := r.store.Apply(r.ctx, c); err != nil {
		return fmt.Errorf("%s returned the error %w", describeChange(c), err)
	}
	r.state = r.state.after(c)
	return nil
}

// settle finds out to which of the states that are allowed the change that was
// tried has led. A later change, which succeeds, keeps a change that is still on
// its way from being taken for one that was made in part.
func (r *rehearsal) settle(tried webhookcfg.Change, allowed ...model) error {
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
	return fmt.Errorf("after %s, which was cut short, and %s: %w", describeChange(tried), describeChange(fence), errors.Join(all...))
}

// compare returns nil if the client's state is still what it was.
func (r *rehearsal) compare() error { return r.state.compare(r.ctx, r.store, r.client) }

// outcomes are the states that are allowed after a change that may have failed.
func (r *rehearsal) outcomes(tried webhookcfg.Change, err error) []model {
	whole := r.state.after(tried)
	if err == nil {
		return []model{whole}
	}
	return []model{whole, r.state}
}
