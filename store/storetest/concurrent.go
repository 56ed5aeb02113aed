package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// together calls do for 0 to n-1 at once, and returns what all of them return.
func together(n int, do func(n int) error) error {
	var group sync.WaitGroup
	all := make([]error, n)
	for i := range n {
		group.Go(func() { all[i] = do(i) })
	}
	group.Wait()
	return errors.Join(all...)
}

// march is a client whose state is known from a number, its step: one goroutine
// makes the change to the next step while others look. Every third step sets all,
// the one after it gives e1 an override, and the one after that unsets e1.
type stepper struct {
	started, applied, looks atomic.Int64
	done                    atomic.Bool
}

// The least that is done in a march, so that neither a fast store nor a slow one
// leaves changes unseen.
const (
	minSteps = 150
	minLooks = 2000
)

func stepChange(step int64) webhookcfg.Change {
	url := egress.NewURL(hookURL(int(step)))
	c := webhookcfg.Set(client, webhookcfg.All(), url)
	switch step % 3 {
	case 1:
		c = webhookcfg.Set(client, webhookcfg.Entity("e1"), url)
	case 2:
		c = webhookcfg.Unset(client, webhookcfg.Entity("e1"))
	}
	c.Time = time.Unix(epoch+step, 0)
	return c
}

// run marches while each of the readers calls its look over and over. A look says
// which step it saw; it must be one between those that it is given.
func (m *stepper) run(ctx context.Context, s webhookcfg.Store, reader func(n int) look) error {
	const readers = 4
	if err := s.Apply(ctx, stepChange(0)); err != nil {
		return err
	}
	return together(1+readers, func(n int) error {
		defer m.done.Store(true)
		if n == 0 {
			return m.write(ctx, s)
		}
		return m.watch(reader(n))
	})
}

func (m *stepper) write(ctx context.Context, s webhookcfg.Store) error {
	for step := int64(1); !m.done.Load() && (step <= minSteps || m.looks.Load() < minLooks); step++ {
		m.started.Store(step)
		if err := s.Apply(ctx, stepChange(step)); err != nil {
			return err
		}
		m.applied.Store(step)
		runtime.Gosched() // to the readers
	}
	return nil
}

func (m *stepper) watch(look look) error {
	seen := int64(0)
	for !m.done.Load() {
		step, err := m.read(seen, look)
		if err != nil {
			return err
		}
		seen = step
		m.looks.Add(1)
		runtime.Gosched() // to the writer
	}
	return nil
}

// look returns the step that the store is at, as far as can be told: from e1 or
// a whole page exactly, from another entity only the last step that set all.
type look func() (step int64, exact bool, err error)

// read looks once: not behind what was seen before or is made already, and not
// ahead of what has begun.
func (m *stepper) read(seen int64, look look) (int64, error) {
	earliest := max(seen, m.applied.Load())
	step, exact, err := look()
	if err != nil {
		return seen, err
	}
	if !exact {
		earliest -= earliest % 3
	}
	if step < earliest {
		return seen, fmt.Errorf("the state of change %d was seen once that of change %d had been made or seen", step, earliest)
	}
	if latest := m.started.Load(); step > latest {
		return seen, fmt.Errorf("the state of change %d was seen before it had begun, at %d", step, latest)
	}
	return max(seen, step), nil
}

// stepOf returns the step whose change decided for a webhook.
func stepOf(hook webhookcfg.Webhook) (int64, error) {
	step := hook.Since.Unix() - epoch
	c := stepChange(max(step, 0))
	want := webhookcfg.Webhook{URL: c.URL, Source: [...]webhookcfg.Source{base, override, off}[max(step, 0)%3], Since: c.Time}
	if !same(hook, want) {
		return 0, fmt.Errorf("%s was seen, which no change led to", describe(hook))
	}
	return step, nil
}

// seenAtOneMoment: readers look at two entities in turn. Were a set of all to reach
// one before the other, some would see time run backwards.
func seenAtOneMoment(ctx context.Context, e Env) error {
	return seenByAll(ctx, []webhookcfg.Store{e.Store})
}

// seenByAll: the writer has the first of the handles, the readers have all in turn.
func seenByAll(ctx context.Context, handles []webhookcfg.Store) error {
	return new(stepper).run(ctx, handles[0], func(n int) look {
		return func() (int64, bool, error) {
			n++
			entity := [...]string{"e1", unnamed}[n%2]
			hook, err := handles[n/2%len(handles)].Resolve(ctx, client, entity)
			if err != nil {
				return 0, false, err
			}
			step, err := stepOf(hook)
			return step, entity == "e1", err
		}
	})
}

// noneLost: every writer has an entity of its own, of a client that they share.
func noneLost(ctx context.Context, e Env) error {
	return noneLostBy(ctx, []webhookcfg.Store{e.Store})
}

func noneLostBy(ctx context.Context, handles []webhookcfg.Store) error {
	const writers, each = 8, 25
	err := together(writers, func(n int) error {
		sc := newScript(ctx, handles[n%len(handles)])
		for step := range each {
			sc.set(client, entityName(n), hookURL(n*each+step))
			sc.expectURL(client, entityName(n), override, hookURL(n*each+step))
		}
		return sc.err
	})
	if err != nil {
		return err
	}
	sc := newScript(ctx, handles[0])
	for n := range writers {
		sc.expectURL(client, entityName(n), override, hookURL(n*each+each-1))
	}
	return sc.err
}

// seenThroughPeers: what each handle has seen before is another thing after every
// change, whichever handle it was made through.
func seenThroughPeers(ctx context.Context, e Env) error {
	handles, err := e.handles(3)
	if err != nil {
		return err
	}
	scenes := make([]*script, len(handles))
	for n, handle := range handles {
		scenes[n] = newScript(ctx, handle)
	}
	expect := func(expectOne func(*script)) error {
		var all []error
		for _, sc := range scenes {
			expectOne(sc)
			all = append(all, sc.err)
		}
		return errors.Join(all...)
	}
	if err := expect(func(sc *script) { sc.expectNone(client, "e1") }); err != nil {
		return err
	}
	for n := range 3 * len(scenes) {
		sc := scenes[n%len(scenes)]
		sc.set(client, "e1", hookURL(n))
		if err := expect(func(sc *script) { sc.expectURL(client, "e1", override, hookURL(n)) }); err != nil {
			return err
		}
		sc.setAll(client, hookURL(-n))
		if err := expect(func(sc *script) { sc.expectURL(client, "e1", base, hookURL(-n)) }); err != nil {
			return err
		}
		sc.unset(client, "e1")
		if err := expect(func(sc *script) { sc.expectOff(client, "e1") }); err != nil {
			return err
		}
	}
	return nil
}

func seenAtOneMomentThroughPeers(ctx context.Context, e Env) error {
	handles, err := e.handles(3)
	if err != nil {
		return err
	}
	return seenByAll(ctx, handles)
}

func noneLostThroughPeers(ctx context.Context, e Env) error {
	handles, err := e.handles(4)
	if err != nil {
		return err
	}
	return noneLostBy(ctx, handles)
}
