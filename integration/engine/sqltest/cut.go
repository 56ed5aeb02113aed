package sqltest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/integration/engine"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

// lostConnections cuts connections between the store and the database.
func (e Engine) lostConnections(t *testing.T) {
	server := e.Shared.Get(t)
	server.Owned(t)
	for name, loss := range map[string]engine.Loss{"cut": engine.Cut, "silent": engine.Silence} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := e.loseEach(t, server, loss, (*sqlstore.Store).Apply)
			if err != nil {
				t.Error(err)
			}
			if made == 0 {
				t.Error("no change was ever made whose answer got lost")
			}
		})
	}
	t.Run("taken for refusals", func(t *testing.T) {
		if _, err := e.loseEach(t, server, engine.Cut, applyForSure); err == nil {
			t.Error("a store that takes for a refusal what it does not know was not caught")
		}
	})
	t.Run("histories", func(t *testing.T) { e.cutHistories(t, server) })
}

type applyFunc func(st *sqlstore.Store, ctx context.Context, c webhookcfg.Change) error

// applyForSure is an Apply that never says that it does not know.
func applyForSure(st *sqlstore.Store, ctx context.Context, c webhookcfg.Change) error {
	if err := st.Apply(ctx, c); err != nil {
		return errors.New("refused")
	}
	return nil
}

// lossRig is a store behind a proxy and one without, for changes of one kind.
type lossRig struct {
	kind      int
	direction engine.Direction
	loss      engine.Loss
	apply     applyFunc

	proxy  *engine.Proxy
	direct *sqlstore.Store
	// connect returns the store behind the proxy with connections that are new.
	connect func() *sqlstore.Store
}

// loseEach makes each kind of change over and over, each time losing another
// request, and another answer, from the first of a new connection on until nothing
// is left to lose. It returns how many changes were made of which the store said
// that it did not know.
func (e Engine) loseEach(t *testing.T, server *engine.Server, loss engine.Loss, apply applyFunc) (made int64, err error) {
	t.Helper()
	admin := e.open(t, server.DSN())
	name := prefix(t, admin)
	direct := e.store(t, admin, name)
	migrate(t, direct)
	var (
		rigs errgroup.Group
		sum  atomic.Int64
	)
	for kind := range changesOf("") {
		for _, direction := range []engine.Direction{engine.Requests, engine.Answers} {
			rig := lossRig{kind: kind, direction: direction, loss: loss, apply: apply, direct: direct}
			rig.proxy = engine.NewProxy(t, server.Addr())
			rig.connect = func() *sqlstore.Store { return e.store(t, e.open(t, server.Via(rig.proxy.Addr())), name) }
			rigs.Go(func() error {
				n, err := rig.loseEach(t.Context())
				sum.Add(n)
				return err
			})
		}
	}
	err = rigs.Wait()
	return sum.Load(), err
}

// changesOf are one change of each kind.
func changesOf(client string) []webhookcfg.Change {
	url := egress.NewURL("https://new.example.com/")
	all := []webhookcfg.Change{
		webhookcfg.Set(client, webhookcfg.Entity("e1"), url), webhookcfg.Set(client, webhookcfg.All(), url),
		webhookcfg.Unset(client, webhookcfg.Entity("e1")), webhookcfg.Unset(client, webhookcfg.All()),
	}
	for i := range all {
		all[i].Time = time.Unix(2, 0)
	}
	return all
}

func (r *lossRig) loseEach(ctx context.Context) (made int64, err error) {
	const most = 100
	for n := 1; n <= most; n++ {
		lost, unknownMade, err := r.loseOne(ctx, n)
		if err != nil {
			return made, fmt.Errorf("change %d, direction %d, number %d lost: %w", r.kind, r.direction, n, err)
		}
		if unknownMade {
			made++
		}
		if !lost {
			return made, nil
		}
	}
	return made, fmt.Errorf("a change took more than %d pieces of data", most)
}

// loseOne makes one change while the n-th piece of data in a direction gets lost, if
// there are as many.
func (r *lossRig) loseOne(ctx context.Context, n int) (lost, unknownMade bool, err error) {
	id := fmt.Sprint(r.kind, "-", r.direction, "-", n)
	before, wanted, err := r.prepare(ctx, "client-"+id, "twin-"+id)
	if err != nil {
		return false, false, err
	}
	st := r.connect()
	r.proxy.Lose(r.direction, r.loss, func(i int) bool { return i == n })
	earlier := r.proxy.Lost()
	outcome, err := r.change(ctx, st, changesOf("client-" + id)[r.kind])
	if err != nil {
		return false, false, err
	}
	after, err := r.direct.List(ctx, "client-"+id, "", 10)
	if err != nil {
		return false, false, err
	}
	unknownMade = errors.Is(outcome, sqlstore.ErrOutcomeUnknown) && reflect.DeepEqual(after, wanted)
	return r.proxy.Lost() > earlier, unknownMade, judge(outcome, before, wanted, after)
}

// prepare gives two clients the same state, which every change alters, and makes
// the change of the second. It returns the state of both.
func (r *lossRig) prepare(ctx context.Context, client, twin string) (before, wanted webhookcfg.Page, err error) {
	url := egress.NewURL("https://old.example.com/")
	var changes []webhookcfg.Change
	for _, name := range []string{client, twin} {
		for _, scope := range []webhookcfg.Scope{webhookcfg.All(), webhookcfg.Entity("e1"), webhookcfg.Entity("e2")} {
			c := webhookcfg.Set(name, scope, url)
			c.Time = time.Unix(1, 0)
			changes = append(changes, c)
		}
	}
	for _, c := range append(changes, changesOf(twin)[r.kind]) {
		if err := r.direct.Apply(ctx, c); err != nil {
			return before, wanted, err
		}
	}
	if before, err = r.direct.List(ctx, client, "", 10); err != nil {
		return before, wanted, err
	}
	wanted, err = r.direct.List(ctx, twin, "", 10)
	return before, wanted, err
}

// change makes a change, which ends with its context where it would wait for ever.
func (r *lossRig) change(ctx context.Context, st *sqlstore.Store, c webhookcfg.Change) (outcome, err error) {
	timeout := patience
	if r.loss == engine.Silence {
		timeout = 300 * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- r.apply(st, ctx, c) }()
	select {
	case outcome = <-ended:
		return outcome, nil
	case <-time.After(patience):
		return nil, errors.New("the change outlived its context by far")
	}
}

// judge holds what became of a change to what the store said of it.
func judge(outcome error, before, wanted, after webhookcfg.Page) error {
	isBefore, isWanted := reflect.DeepEqual(after, before), reflect.DeepEqual(after, wanted)
	switch {
	case outcome == nil && !isWanted:
		return errors.New("the store said that the change was made, and it was not")
	case errors.Is(outcome, sqlstore.ErrOutcomeUnknown) && !isBefore && !isWanted:
		return fmt.Errorf("the change was made by half: %+v", after)
	case outcome != nil && !errors.Is(outcome, sqlstore.ErrOutcomeUnknown) && !isBefore:
		return fmt.Errorf("the change was made in spite of: %w", outcome)
	}
	return nil
}
