package storetest

import (
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
func (m *stepper) run(sc *script, next observe) error {
	const readers = 4
	if err := sc.Store.Apply(sc.ctx, stepChange(0)); err != nil {
		return err
	}
	return together(1+readers, func(n int) error {
		defer m.done.Store(true)
		if n == 0 {
			return m.write(sc)
		}
		return m.observe(n, next)
	})
}

func (m *stepper) write(sc *script) error {
	for step := int64(1); !m.done.Load() && (step <= minSteps || m.reads.Load() < minReads); step++ {
		m.started.Store(step)
		if err := sc.Store.Apply(sc.ctx, stepChange(step)); err != nil {
			return err
		}
		m.applied.Store(step)
		runtime.Gosched() // let the readers run
	}
	return nil
}

func (m *stepper) observe(n int, next observe) error {
	for seen := int64(0); !m.done.Load(); n++ {
		step, err := m.read(seen, n, next)
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
// another entity the last step that set all. Each reader counts its observations by n.
type observe func(n int) (step int64, exact bool, err error)

// read observes once. The step must not be earlier than one that was observed or applied
// before, and not later than the last one that was started.
func (m *stepper) read(seen int64, n int, next observe) (int64, error) {
	earliest := max(seen, m.applied.Load())
	step, exact, err := next(n)
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
// of two entities, through all handles in turn, must not see the state go back.
func seenAtOneMoment(sc *script) error {
	return new(stepper).run(sc, func(n int) (int64, bool, error) {
		entity := [...]string{"e1", unnamed}[n%2]
		hook, err := sc.handles[n/2%len(sc.handles)].Resolve(sc.ctx, client, entity)
		if err != nil {
			return 0, false, err
		}
		step, err := stepOf(hook)
		return step, entity == "e1", err
	})
}

// noneLost requires that of concurrent changes to different entities of one client none
// is lost, with writers on all handles.
func noneLost(sc *script) error {
	const writers, each = 8, 25
	sc.check(together(writers, func(n int) error {
		writer := sc.fork(n)
		for step := range each {
			writer.set(client, entityName(n), hookURL(n*each+step))
			writer.expectURL(client, entityName(n), override, hookURL(n*each+step))
		}
		return writer.err
	}))
	for n := range writers {
		sc.expectURL(client, entityName(n), override, hookURL(n*each+each-1))
	}
	return sc.err
}

// seenThroughPeers requires that a change through any handle is visible at once through
// every handle, also through those that read the entity before.
func seenThroughPeers(sc *script) error {
	everywhere := func(expect func()) {
		for n := range sc.handles {
			sc.use(n)
			expect()
		}
	}
	everywhere(func() { sc.expectNone(client, "e1") })
	for n := range 3 * len(sc.handles) {
		sc.use(n)
		sc.set(client, "e1", hookURL(n))
		everywhere(func() { sc.expectURL(client, "e1", override, hookURL(n)) })
		sc.use(n)
		sc.setAll(client, hookURL(-n))
		everywhere(func() { sc.expectURL(client, "e1", base, hookURL(-n)) })
		sc.use(n)
		sc.unset(client, "e1")
		everywhere(func() { sc.expectOff(client, "e1") })
	}
	return sc.err
}
