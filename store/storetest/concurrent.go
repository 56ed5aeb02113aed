package storetest

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// together calls do concurrently for 0 to n-1, and returns the first of the errors.
func together(n int, do func(n int) error) error {
	var group sync.WaitGroup
	all := make([]error, n)
	for i := range n {
		group.Go(func() { all[i] = do(i) })
	}
	group.Wait()
	return cmp.Or(all...)
}

// stepper takes a client through numbered states, its steps, while readers watch. It sets
// all, sets each of some entities, sets all, unsets each of them, and starts again.
type stepper struct {
	entities int // number of entities
	minReads int64

	started, applied, observed, reads atomic.Int64
	done                              atomic.Bool
}

// minSteps is the minimum number of steps. Together with stepper.minReads, it makes sure that
// there are reads between the changes, for fast and for slow stores.
const minSteps = 150

// allEntities stands for every entity, and otherEntity for an entity that no step changes.
const (
	allEntities = -1
	otherEntity = -2
)

// round returns the number of steps from one set of all to the next.
func (m *stepper) round() int64 { return int64(1 + m.entities) }

// entity returns the number of the entity that a step changes, or allEntities. The entities
// don't change in the order of a list, so that you can see gaps in a page that mixes moments.
func (m *stepper) entity(step int64) int {
	const stride = 7 // has no common factor with some
	k := int(step % m.round())
	if k == 0 {
		return allEntities
	}
	return k * stride % m.entities
}

// result returns the webhook that the step's entities have afterwards.
func (m *stepper) result(step int64) webhookcfg.Webhook {
	hook := webhookcfg.Webhook{URL: egress.NewURL(hookURL(int(step))), Source: override, Since: timeOf(step)}
	switch {
	case m.entity(step) == allEntities:
		hook.Source = base
	case step/m.round()%2 > 0:
		hook.Source, hook.URL = off, egress.URL{}
	}
	return hook
}

func (m *stepper) apply(sc *script, step int64) error {
	scope, hook := webhookcfg.All(), m.result(step)
	if n := m.entity(step); n != allEntities {
		scope = webhookcfg.Entity(entityName(n))
	}
	c := webhookcfg.UnsetChange(client, scope)
	if !hook.URL.IsZero() {
		c = webhookcfg.SetChange(client, scope, hook.URL)
	}
	c.Time = hook.Since
	return sc.send(sc.ctx, c, describeChange(c))
}

// run makes the steps while readers watch. It fails if a reader sees a step out of order.
func (m *stepper) run(sc *script, next observe) error {
	readers := max(4, 2*len(sc.handles)) // at least two per handle, since a handle's readers can share a read
	if err := m.apply(sc, 0); err != nil {
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
	least := max(int64(sc.fewer(minSteps)), 2*m.round()+1)
	for step := int64(1); !m.done.Load() && (step <= least || m.reads.Load() < m.minReads); step++ {
		m.started.Store(step)
		if err := m.apply(sc, step); err != nil {
			return err
		}
		m.applied.Store(step)
		runtime.Gosched() // let the readers run
	}
	return nil
}

func (m *stepper) observe(reader int, next observe) error {
	for n := reader; !m.done.Load(); n++ {
		if err := m.read(reader, n, next); err != nil {
			return err
		}
		m.reads.Add(1)
		runtime.Gosched() // let the writer run
	}
	return nil
}

// observe reads, and returns the first and the last step that the result fits. Each reader
// counts its observations in n.
type observe func(reader, n int) (first, last int64, err error)

// read observes once. The state can't be earlier than a state that any reader saw, or the
// writer applied, before the call. It can't be later than the last step that was started.
func (m *stepper) read(reader, n int, next observe) error {
	earliest := max(m.observed.Load(), m.applied.Load())
	first, last, err := next(reader, n)
	if err != nil {
		return err
	}
	if last < earliest {
		return fmt.Errorf("a reader saw the state after change %d, although change %d had been acknowledged or seen before that: reads must not go back, and a result must not mix parts read at different moments", last, earliest)
	}
	if latest := m.started.Load(); first > latest {
		return fmt.Errorf("a reader saw change %d when only changes up to %d had been started", first, latest)
	}
	for seen := m.observed.Load(); seen < first && !m.observed.CompareAndSwap(seen, first); {
		seen = m.observed.Load()
	}
	return nil
}

// steps returns the first and the last step after which the nth entity has the webhook.
func (m *stepper) steps(n int, hook webhookcfg.Webhook) (first, last int64, err error) {
	changes := func(step int64) bool { return m.entity(step) == n || m.entity(step) == allEntities }
	first = max(stepAt(hook.Since), 0)
	if !changes(first) || !same(hook, m.result(first)) {
		return 0, 0, fmt.Errorf("a reader saw %s, which none of the changes leads to", describe(hook))
	}
	for last = first; !changes(last + 1); {
		last++
	}
	return first, last, nil
}

// seenAtOneMoment checks that a change of all reaches all entities at once, whether it drops
// one override, some, or a crowd. Readers of all entities, through all handles, must not see
// the state go back.
func seenAtOneMoment(sc *script) error {
	for _, entities := range []int{1, some} {
		m := &stepper{entities: entities, minReads: int64(sc.fewer(500))}
		err := m.run(sc, func(reader, n int) (first, last int64, err error) {
			entity, name := otherEntity, unnamed
			if n%2 > 0 {
				entity = n / 2 % entities
				name = entityName(entity)
			}
			hook, err := sc.handles[reader%len(sc.handles)].Resolve(sc.ctx, client, name)
			if err != nil {
				return 0, 0, err
			}
			return m.steps(entity, hook)
		})
		if err != nil {
			return err
		}
	}
	set := webhookcfg.SetChange("crowd set", webhookcfg.All(), egress.NewURL(hookURL(-1)))
	unset := webhookcfg.UnsetChange("crowd unset", webhookcfg.All())
	for _, c := range []webhookcfg.Change{set, unset} {
		if err := crowdDroppedAtOnce(sc, c); err != nil {
			return err
		}
	}
	return nil
}

// crowdDroppedAtOnce drops a crowd of overrides with a change of all while readers resolve
// them. Once a reader has seen the change, nobody may see an override.
func crowdDroppedAtOnce(sc *script, c webhookcfg.Change) error {
	c.Time = timeOf(1)
	after := newModel().after(c)[unnamed]
	sc.setCrowd(c.Client)
	if sc.err != nil {
		return sc.err
	}
	all := sc.crowded()
	// Look at overrides that a store is likely to drop last: the last ones in byte order, and
	// the last ones set.
	var latest []webhookcfg.Override
	for n := range 50 {
		latest = append(latest, crowdOverride(len(all)-1-n))
	}
	look := func(n int) webhookcfg.Override {
		return [...]webhookcfg.Override{all[n*389%len(all)], all[len(all)-1-n%50], latest[n%50]}[n%3]
	}
	var changed, done atomic.Bool // changed is set once the change is applied or seen, done once it is applied
	var ready sync.WaitGroup      // readers that have started
	readers := max(4, 2*len(sc.handles))
	ready.Add(readers)
	return together(1+readers, func(reader int) error {
		if reader == 0 {
			defer done.Store(true)
			ready.Wait()
			err := sc.send(sc.ctx, c, describeChange(c))
			changed.Store(err == nil)
			return err
		}
		begin := sync.OnceFunc(ready.Done)
		defer begin()
		for n, more := reader, 10; more > 0; n++ {
			want, late := look(n), changed.Load()
			hook, err := sc.handles[reader%len(sc.handles)].Resolve(sc.ctx, c.Client, want.Entity)
			switch {
			case err != nil:
				return err
			case same(hook, after):
				changed.Store(true)
			case late:
				return fmt.Errorf("Resolve(%q, %q) returned %s, although this change had been acknowledged, or seen in another entity: %s; a change must reach all entities at once",
					c.Client, want.Entity, describe(hook), describeChange(c))
			case !same(hook, want.Webhook):
				return fmt.Errorf("Resolve(%q, %q) returned %s, want %s", c.Client, want.Entity, describe(hook), describe(want.Webhook))
			}
			begin()
			if done.Load() {
				more--
			}
			runtime.Gosched() // let the others run
		}
		return nil
	})
}

// noneLost changes different entities of one client at the same time, and different clients.
// All changes must survive, even if there are more callers than a store has connections.
func noneLost(sc *script) error {
	const writers, each = 40, 5
	sc.check(together(writers, func(n int) error {
		writer := sc.fork(n)
		for step := range each {
			name := [...]string{client, fmt.Sprint("client ", n)}[step%2]
			writer.set(name, entityName(n), hookURL(n*each+step))
			writer.expectURL(name, entityName(n), override, hookURL(n*each+step))
		}
		return writer.err
	}))
	sc.expectAll("once more")
	return sc.err
}

// seenWhileRead checks that the next Resolve sees a change while others resolve the entity
// too, because their reads may have started before the change.
func seenWhileRead(sc *script) error {
	const minChanges, readers = 100, 2 // readers per handle
	minReads := int64(sc.fewer(600))
	ctx, cancel := context.WithCancel(sc.ctx)
	defer cancel()
	var reads atomic.Int64
	return together(1+readers*len(sc.handles), func(n int) error {
		defer cancel()
		if n == 0 {
			for n := 0; sc.err == nil && ctx.Err() == nil && (n < minChanges || reads.Load() < minReads); n++ {
				sc.set(client, "e1", hookURL(n))
				sc.expectURL(client, "e1", override, hookURL(n))
				for range n % 8 { // let the readers run, sometimes further than others
					runtime.Gosched()
				}
			}
			return sc.err
		}
		for ctx.Err() == nil {
			if _, err := sc.handles[n%len(sc.handles)].Resolve(sc.ctx, client, "e1"); err != nil {
				return err
			}
			reads.Add(1)
			runtime.Gosched() // let the others run
		}
		return nil
	})
}

// There are at least minRaces races, and up to maxRaces if they take less than raceTime.
const (
	minRaces, maxRaces = 60, 2000
	raceTime           = 250 * time.Millisecond
)

// someOrder makes changes of one client at the same time, through all handles. The result
// must be the same as if they'd been made one after another, in some order.
func someOrder(sc *script) error {
	least, most := sc.fewer(minRaces), sc.fewer(maxRaces)
	for n, start := 0, time.Now(); n < least || n < most && time.Since(start) < raceTime; n++ {
		r := &scenario{script: sc.fork(0), client: fmt.Sprintf("race-%d", n), state: newModel()}
		if n%2 > 0 { // in the other half, the client is unknown
			r.setUp()
		}
		if sc.check(r.err); sc.err != nil {
			return sc.err
		}
		if err := r.race(sc.handles, n); err != nil {
			return err
		}
	}
	return nil
}

// race makes a change of each kind, all at the same time. The changes are for one entity or
// two.
func (r *scenario) race(handles []webhookcfg.Store, n int) error {
	url, entity := egress.NewURL(hookURL(n)), [...]string{"e1", "e1", "e2"}[n%3]
	changes := []webhookcfg.Change{
		webhookcfg.SetChange(r.client, webhookcfg.All(), url),
		webhookcfg.UnsetChange(r.client, webhookcfg.All()),
		webhookcfg.SetChange(r.client, webhookcfg.Entity(entity), url),
		webhookcfg.UnsetChange(r.client, webhookcfg.Entity("e1")),
	}
	r.steps = append(r.steps, "at the same time:")
	for i, order := 0, n/2; i < len(changes); i++ { // the first to start is often the first to finish, so vary the order
		left := len(changes) - i
		j := i + order%left
		order /= left
		changes[i], changes[j] = changes[j], changes[i]
		r.now++
		changes[i].Time = timeOf(r.now)
		r.steps = append(r.steps, describeChange(changes[i]))
	}
	var ready sync.WaitGroup
	ready.Add(len(changes))
	r.check(together(len(changes), func(i int) error {
		ready.Done()
		ready.Wait()
		return handles[(n+i)%len(handles)].Apply(r.ctx, changes[i])
	}))
	found := newModel()
	for _, entity := range universe {
		found[entity] = r.resolve(r.client, entity)
	}
	if r.err == nil && !r.state.reaches(found, changes) {
		r.fail("the state is now %s; no order of the changes leads to it, so they must have mixed", found)
	}
	r.expectList(r.client, found)
	return r.err
}

// reaches reports whether the changes lead to the state, in any order.
func (m model) reaches(state model, changes []webhookcfg.Change) bool {
	if len(changes) == 0 {
		return !slices.ContainsFunc(universe, func(entity string) bool { return !same(m.of(entity), state.of(entity)) })
	}
	for i, c := range changes {
		if m.after(c).reaches(state, slices.Concat(changes[:i], changes[i+1:])) {
			return true
		}
	}
	return false
}
