package sqltest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

// lostConnections loses data between the store and the database.
func (e Engine) lostConnections(t *testing.T) {
	server := e.Shared(t)
	server.SkipIfExternal(t)
	for name, lost := range map[string]struct {
		loss    engine.Loss
		lasting bool
	}{
		"cut":          {engine.Cut, false},
		"silent":       {engine.Silence, false},
		"cut, lasting": {engine.Cut, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// On a slow machine, the store may run out of time before it has found out.
			const most = 20
			for range most {
				sum, err := e.loseEach(t, server, lossTest{loss: lost.loss, lasting: lost.lasting})
				if err != nil {
					t.Fatal(err)
				}
				if lost.lasting && sum.unknown > 0 || !lost.lasting && sum.settled > 0 {
					return
				}
				t.Logf("%+v: no change took effect whose response was lost", sum)
			}
			t.Errorf("no such change in %d rounds", most)
		})
	}
}

// lossTest makes one kind of change through a proxy, and checks it without the proxy.
type lossTest struct {
	kind      int
	direction engine.Direction
	loss      engine.Loss
	lasting   bool // lose all later data too

	proxy  *engine.Proxy
	direct *sqlstore.Store
	// connect returns the store behind the proxy, with new connections.
	connect func() (*sqlstore.Store, io.Closer)
}

// lossCounts counts the changes that took effect although their connection was lost. The
// store found out the outcome of the settled ones, but not of the unknown ones.
type lossCounts struct{ settled, unknown int }

// loseEach makes each kind of change repeatedly. Each time it loses another request or
// response, from the first one of a new connection to the last one.
func (e Engine) loseEach(t *testing.T, server *engine.Server, like lossTest) (sum lossCounts, err error) {
	t.Helper()
	admin := e.direct(t, server.DSN())
	name := prefix(t, admin)
	direct := e.store(t, admin, name)
	migrate(t, direct)
	var (
		tests errgroup.Group
		mu    sync.Mutex
	)
	for kind := range e.kinds() {
		for _, direction := range []engine.Direction{engine.Requests, engine.Responses} {
			test := like
			test.kind, test.direction, test.direct = kind, direction, direct
			test.proxy = engine.NewProxy(t, server.Addr())
			test.connect = func() (*sqlstore.Store, io.Closer) {
				db := e.Open(t, server.Via(test.proxy.Addr()))
				return e.store(t, db, name), db
			}
			tests.Go(func() error {
				n, err := test.loseEach(t.Context())
				mu.Lock()
				defer mu.Unlock()
				sum.settled += n.settled
				sum.unknown += n.unknown
				return err
			})
		}
	}
	err = tests.Wait()
	return sum, err
}

// changesOf returns one change of each kind.
func changesOf(client string) []webhookcfg.Change {
	url := egress.NewURL("https://new.example.com/")
	all := []webhookcfg.Change{
		webhookcfg.SetChange(client, webhookcfg.Entity("e1"), url), webhookcfg.SetChange(client, webhookcfg.All(), url),
		webhookcfg.UnsetChange(client, webhookcfg.Entity("e1")), webhookcfg.UnsetChange(client, webhookcfg.All()),
	}
	for i := range all {
		all[i].Time = time.Unix(2, 0)
	}
	return all
}

// kinds returns how many kinds of changes to make.
func (e Engine) kinds() int {
	if e.OneKind {
		return 1
	}
	return len(changesOf(""))
}

func (r *lossTest) loseEach(ctx context.Context) (sum lossCounts, err error) {
	const most = 100
	for n := 1; n <= most; n++ {
		lost, err := r.loseOne(ctx, n, &sum)
		if err != nil {
			return sum, fmt.Errorf("change %d, direction %d, number %d lost: %w", r.kind, r.direction, n, err)
		}
		if !lost {
			return sum, nil
		}
	}
	return sum, fmt.Errorf("a change took more than %d pieces of data", most)
}

// loseOne makes one change, and loses the n-th piece of data in a direction. It returns false
// if there weren't that many.
func (r *lossTest) loseOne(ctx context.Context, n int, sum *lossCounts) (lost bool, err error) {
	id := fmt.Sprint(r.kind, "-", r.direction, "-", n)
	before, wanted, err := r.prepare(ctx, "client-"+id, "twin-"+id)
	if err != nil {
		return false, err
	}
	st, pool := r.connect()
	defer pool.Close()
	changing, cancel := context.WithCancel(ctx)
	defer cancel()
	r.proxy.Lose(r.direction, r.loss, func(i int) bool {
		lose := i == n || r.lasting && i > n
		if lose && r.loss == engine.Silence {
			cancel() // otherwise it would wait forever for the lost data
		}
		return lose
	})
	earlier := r.proxy.Lost()
	outcome, err := change(changing, st, changesOf("client-" + id)[r.kind])
	if err != nil {
		return false, err
	}
	after, err := r.direct.List(ctx, "client-"+id, "", 10)
	if err != nil {
		return false, err
	}
	lost = r.proxy.Lost() > earlier
	switch made := samePage(after, wanted); {
	case made && lost && outcome == nil:
		sum.settled++
	case made && errors.Is(outcome, sqlstore.ErrOutcomeUnknown):
		sum.unknown++
	}
	return lost, checkOutcome(outcome, before, wanted, after)
}

// prepare gives two clients the same state, and applies the change to the second one. Every
// change alters that state. It returns the states of both.
func (r *lossTest) prepare(ctx context.Context, client, twin string) (before, wanted webhookcfg.Page, err error) {
	url := egress.NewURL("https://old.example.com/")
	var changes []webhookcfg.Change
	for _, name := range []string{client, twin} {
		for _, scope := range []webhookcfg.Scope{webhookcfg.All(), webhookcfg.Entity("e1"), webhookcfg.Entity("e2")} {
			c := webhookcfg.SetChange(name, scope, url)
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

// change makes a change. It fails if the change doesn't end.
func change(ctx context.Context, st *sqlstore.Store, c webhookcfg.Change) (outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- st.Apply(ctx, c) }()
	select {
	case outcome = <-ended:
		return outcome, nil
	case <-time.After(2 * callTimeout):
		return nil, errors.New("the change long outlived its context")
	}
}

// checkOutcome checks that the effect of a change matches the store's error.
func checkOutcome(outcome error, before, wanted, after webhookcfg.Page) error {
	isBefore, isWanted := samePage(after, before), samePage(after, wanted)
	switch {
	case outcome == nil && !isWanted:
		return errors.New("the store acknowledged a change that did not take effect")
	case errors.Is(outcome, sqlstore.ErrOutcomeUnknown) && !isBefore && !isWanted:
		return fmt.Errorf("the change took effect in part: %+v", after)
	case outcome != nil && !errors.Is(outcome, sqlstore.ErrOutcomeUnknown) && !isBefore:
		return fmt.Errorf("the change took effect in spite of: %w", outcome)
	}
	return nil
}

// lostInHistories cuts connections in the middle of histories.
func (e Engine) lostInHistories(t *testing.T) {
	server := e.Shared(t)
	server.SkipIfExternal(t)
	proxy := engine.NewProxy(t, server.Addr())
	workload := linearizable.Workload{Clients: 1, Goroutines: []int{6}, Operations: 25, Histories: 5}
	workload.Fault = func() error {
		proxy.Lose(engine.Responses, engine.Cut, func(n int) bool { return n%6 == 0 && n <= 48 })
		return nil
	}
	linearizable.Check(t, workload, func(t testing.TB) []linearizable.Store { return e.replicas(t, server.Via(proxy.Addr())) })
	if proxy.Lost() == 0 {
		t.Error("no data was lost")
	}
}

// samePage reports whether two pages are equal.
func samePage(a, b webhookcfg.Page) bool {
	return a.Next == b.Next && sameWebhook(a.Base, b.Base) && slices.EqualFunc(a.Overrides, b.Overrides, func(a, b webhookcfg.Override) bool {
		return a.Entity == b.Entity && sameWebhook(a.Webhook, b.Webhook)
	})
}

func sameWebhook(a, b webhookcfg.Webhook) bool {
	return a.Source == b.Source && a.URL.Equal(b.URL) && a.Since.Equal(b.Since)
}
