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

// together calls do concurrently for 0 to n-1, and joins the errors.
func together(n int, do func(n int) error) error {
	var group sync.WaitGroup
	all := make([]error, n)
	for i := range n {
		group.Go(func() { all[i] = do(i) })
	}
	group.Wait()
	return errors.Join(all...)
}

// stepper changes a client through a sequence of numbered states, its steps, while readers
// observe it. Every third step sets all, the next one gives e1 an override, and the one
// after that unsets e1.
type stepper struct {
	started, applied, reads atomic.Int64
	done                    atomic.Bool
}

// The minimum numbers of steps and of reads, so that both a fast and a slow store have
// reads between their changes.
const (
	minSteps = 150
	minReads = 2000
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

// run makes the steps while readers observe them. It fails if a reader observes a step out
// of order.
func (m *stepper) run(ctx context.Context, s webhookcfg.Store, reader func(n int) observe) error {
	const readers = 4
	if err := s.Apply(ctx, stepChange(0)); err != nil {
		return err
	}
	return together(1+readers, func(n int) error {
		defer m.done.Store(true)
		if n == 0 {
			return m.write(ctx, s)
		}
		return m.observe(reader(n))
	})
}

func (m *stepper) write(ctx context.Context, s webhookcfg.Store) error {
	for step := int64(1); !m.done.Load() && (step <= minSteps || m.reads.Load() < minReads); step++ {
		m.started.Store(step)
		if err := s.Apply(ctx, stepChange(step)); err != nil {
			return err
		}
		m.applied.Store(step)
		runtime.Gosched() // let the readers run
	}
	return nil
}

func (m *stepper) observe(next observe) error {
	seen := int64(0)
	for !m.done.Load() {
		step, err := m.read(seen, next)
		if err != nil {
			return err
		}
		seen = step
		m.reads.Add(1)
		runtime.Gosched() // let the writer run
	}
	return nil
}

// observe returns the step that the store is at: exactly, from e1 or a whole page, or from
// another entity the last step that set all.
type observe func() (step int64, exact bool, err error)

// read observes once. The step must not be earlier than one that was observed or applied
// before, and not later than the last one that was started.
func (m *stepper) read(seen int64, next observe) (int64, error) {
	earliest := max(seen, m.applied.Load())
	step, exact, err := next()
	if err != nil {
		return seen, err
	}
	if !exact {
		earliest -= earliest % 3
	}
	if step < earliest {
		return seen, fmt.Errorf("change %d was observed after change %d had been applied or observed", step, earliest)
	}
	if latest := m.started.Load(); step > latest {
		return seen, fmt.Errorf("change %d was observed before it started, at %d", step, latest)
	}
	return max(seen, step), nil
}

// stepOf returns the step that a webhook results from.
func stepOf(hook webhookcfg.Webhook) (int64, error) {
	step := hook.Since.Unix() - epoch
	c := stepChange(max(step, 0))
	want := webhookcfg.Webhook{URL: c.URL, Source: [...]webhookcfg.Source{base, override, off}[max(step, 0)%3], Since: c.Time}
	if !same(hook, want) {
		return 0, fmt.Errorf("%s was observed, which results from no change", describe(hook))
	}
	return step, nil
}

// seenAtOneMoment requires that a change of all reaches every entity at once: readers
// of two entities in turn must not see the state go back.
func seenAtOneMoment(ctx context.Context, e Env) error {
	return seenByAll(ctx, []webhookcfg.Store{e.Store})
}

// seenByAll does so with changes through the first handle and reads through all of them
// in turn.
func seenByAll(ctx context.Context, handles []webhookcfg.Store) error {
	return new(stepper).run(ctx, handles[0], func(n int) observe {
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

// noneLost requires that of concurrent changes to different entities of one client none
// is lost.
func noneLost(ctx context.Context, e Env) error {
	return noneLostBy(ctx, []webhookcfg.Store{e.Store})
}

// noneLostBy does so with writers on all handles.
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

// seenThroughPeers requires that a change through any handle is visible at once through
// every handle, also through those that read the entity before.
func seenThroughPeers(ctx context.Context, e Env) error {
	handles, err := e.handles(3)
	if err != nil {
		return err
	}
	scripts := make([]*script, len(handles))
	for n, handle := range handles {
		scripts[n] = newScript(ctx, handle)
	}
	expect := func(expectOne func(*script)) error {
		var all []error
		for _, sc := range scripts {
			expectOne(sc)
			all = append(all, sc.err)
		}
		return errors.Join(all...)
	}
	if err := expect(func(sc *script) { sc.expectNone(client, "e1") }); err != nil {
		return err
	}
	for n := range 3 * len(scripts) {
		sc := scripts[n%len(scripts)]
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

// seenAtOneMomentThroughPeers requires of several handles what seenAtOneMoment requires
// of one.
func seenAtOneMomentThroughPeers(ctx context.Context, e Env) error {
	handles, err := e.handles(3)
	if err != nil {
		return err
	}
	return seenByAll(ctx, handles)
}

// noneLostThroughPeers requires of several handles what noneLost requires of one.
func noneLostThroughPeers(ctx context.Context, e Env) error {
	handles, err := e.handles(4)
	if err != nil {
		return err
	}
	return noneLostBy(ctx, handles)
}
