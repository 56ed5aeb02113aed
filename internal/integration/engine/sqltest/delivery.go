package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"golang.org/x/sync/errgroup"
)

// deliveries checks the deliveries of several replicas. They must not wait for changes of the
// client, nor changes for them.
func (e Engine) deliveries(t *testing.T) {
	dsn := e.Shared(t).DSN()
	admin := e.Open(t, dsn)
	name := prefix(t, admin)
	open := func() *sqlstore.Store { return e.store(t, e.Open(t, dsn), name) }
	migrate(t, open())
	Deliveries(t, open)
	SweepsDeliveries(t, open())
	t.Run("rows", func(t *testing.T) {
		st := open()
		d := deliver.Record{LastSuccess: time.Unix(1, 0)}
		if err := errors.Join(st.Apply(t.Context(), anyChange("acme", 1)), st.SaveDelivery(t.Context(), "acme", webhookcfg.All(), d)); err != nil {
			t.Fatal(err)
		}
		unlock := lockRow(t, admin, name+"client", "id = 'acme'", "swept = swept")
		if err := st.SaveDelivery(t.Context(), "acme", webhookcfg.All(), d); err != nil {
			t.Errorf("a save during a change: %v", err)
		}
		if got, err := st.LoadDelivery(t.Context(), "acme", webhookcfg.All()); err != nil || !got.LastSuccess.Equal(d.LastSuccess) {
			t.Errorf("a load during a change: %+v, %v", got, err)
		}
		unlock()
		unlock = lockRow(t, admin, name+"delivery", "client = 'acme'", "latest = latest")
		for kind, c := range changesOf("acme") {
			if err := st.Apply(t.Context(), c); err != nil {
				t.Errorf("change %d while a save holds its row: %v", kind, err)
			}
		}
		unlock()
	})
	t.Run("saved during a sweep", func(t *testing.T) { e.savedDuringSweep(t, admin, open(), name) })
	if e.Denied != nil {
		t.Run("denied", func(t *testing.T) { e.deniedDeliveries(t, admin, name) })
		t.Run("denied overrides", func(t *testing.T) { e.deniedOverrides(t, admin, name) })
	}
}

// savedDuringSweep checks that a sweep keeps a row that was saved while the sweep waited for
// it.
func (e Engine) savedDuringSweep(t *testing.T, admin *sql.DB, st *sqlstore.Store, name string) {
	old := deliver.Record{LastSuccess: time.Unix(1, 0)}
	if err := st.SaveDelivery(t.Context(), "saved", webhookcfg.All(), old); err != nil {
		t.Fatal(err)
	}
	tx, err := admin.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	save := fmt.Sprintf("UPDATE %sdelivery SET latest = %d WHERE client = 'saved'", name, time.Now().UnixMicro())
	if _, err := tx.ExecContext(t.Context(), save); err != nil {
		t.Fatal(err)
	}
	swept := make(chan error, 1)
	go func() { _, err := st.Sweep(t.Context(), 10); swept <- err }()
	query := strings.ReplaceAll(e.Waiting, "{prefix}", name)
	for waiting := 0; waiting == 0 && len(swept) == 0; {
		if err := admin.QueryRowContext(t.Context(), query).Scan(&waiting); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tx.Commit(), <-swept); err != nil {
		t.Error(err)
	}
	if d, err := st.LoadDelivery(t.Context(), "saved", webhookcfg.All()); err != nil || !d.LastSuccess.Equal(old.LastSuccess) {
		t.Errorf("after the sweep: %+v, %v", d, err)
	}
}

// deniedDeliveries checks a user without privileges for the table of deliveries, as after a
// migration by another user. Only deliveries must fail.
func (e Engine) deniedDeliveries(t *testing.T, admin *sql.DB, name string) {
	server := e.Shared(t)
	server.SkipIfExternal(t)
	dsn := e.Denied(t, admin, server.DSN(), []string{name + "schema", name + "client", name + "override"})
	st := e.store(t, e.Open(t, dsn), name)
	for call, do := range Calls(st) {
		err := do(t.Context())
		if denied := call == "load" || call == "save" || call == "sweep" || call == "erase"; (err != nil) != denied ||
			denied && (errors.Is(err, sqlstore.ErrOutcomeUnknown) || !strings.Contains(err.Error(), e.NoPrivilege)) {
			t.Errorf("%s without privileges for deliveries: %v", call, err)
		}
	}
	if err := overrides(t.Context(), st, 2); err != nil {
		t.Fatal(err)
	}
	if err := st.Apply(t.Context(), webhookcfg.UnsetChange("swept", webhookcfg.All())); err != nil {
		t.Fatal(err)
	}
	if removed, err := st.Sweep(t.Context(), 10); err == nil || removed < 2 {
		t.Errorf("%d overrides were swept without privileges for deliveries: %v", removed, err)
	}
	if err := st.Healthy(t.Context()); err != nil {
		t.Errorf("healthy without privileges for deliveries: %v", err)
	}
}

// deniedOverrides checks that a user without privileges for the table of overrides isn't told that
// the store works.
func (e Engine) deniedOverrides(t *testing.T, admin *sql.DB, name string) {
	dsn := e.Denied(t, admin, e.Shared(t).DSN(), []string{name + "schema", name + "client", name + "delivery"})
	st := e.store(t, e.Open(t, dsn), name)
	for call, err := range map[string]error{"migrate": st.Migrate(t.Context()), "healthy": st.Healthy(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), e.NoPrivilege) {
			t.Errorf("%s without privileges for overrides: %v", call, err)
		}
	}
}

// Deliveries checks loads and saves by several stores on the same tables.
func Deliveries(t *testing.T, open func() *sqlstore.Store) {
	stores := []*sqlstore.Store{open(), open(), open()}
	t.Run("random", func(t *testing.T) { randomDeliveries(t, stores) })
	t.Run("concurrent", func(t *testing.T) { concurrentDeliveries(t, stores) })
}

type deliveryKey struct {
	client string
	scope  webhookcfg.Scope
}

// deliveryKeys are names that a collation, a conversion or a concatenation can confuse.
func deliveryKeys() (keys []deliveryKey) {
	names := []string{"a", "A", "a ", "a\x00", "\x00", "\xff\xfe", "ä", "a\u0308", "all", strings.Repeat("n", 1024)}
	for _, client := range names {
		keys = append(keys, deliveryKey{client, webhookcfg.All()})
		for _, entity := range names {
			keys = append(keys, deliveryKey{client, webhookcfg.Entity(entity)})
		}
	}
	return keys
}

func latest(d deliver.Record) int64 { return max(d.LastSuccess.UnixMicro(), d.LastFailure.UnixMicro()) }

// deliveryReasons are the reasons that a record can have.
var deliveryReasons = []deliver.Reason{
	"", deliver.ReasonUnreachable, deliver.ReasonRedirect, deliver.ReasonThrottled,
	deliver.ReasonStatus, deliver.ReasonGone, deliver.ReasonPolicy, deliver.ReasonExpired,
}

func anyDelivery() deliver.Record {
	moment := func() time.Time {
		if rand.IntN(4) == 0 {
			return time.Time{}
		}
		return time.Now().Add(rand.N(10 * time.Microsecond))
	}
	return deliver.Record{
		Since: moment(), Stopped: rand.IntN(2) > 0, Reason: deliveryReasons[rand.IntN(len(deliveryReasons))],
		LastSuccess: moment(), LastFailure: moment(), FirstFailure: moment(),
	}
}

// inMicroseconds returns a record as a load returns it.
func inMicroseconds(d deliver.Record) deliver.Record {
	for _, at := range []*time.Time{&d.Since, &d.LastSuccess, &d.LastFailure, &d.FirstFailure} {
		*at = time.UnixMicro(at.UnixMicro()).UTC()
	}
	return d
}

// randomDeliveries makes random loads and saves through any of the stores, and compares them
// with a map.
func randomDeliveries(t *testing.T, stores []*sqlstore.Store) {
	const calls = 1500
	keys, want := deliveryKeys(), make(map[deliveryKey]deliver.Record)
	for range calls {
		key, st := keys[rand.IntN(len(keys))], stores[rand.IntN(len(stores))]
		if rand.IntN(3) > 0 {
			d := anyDelivery()
			if err := st.SaveDelivery(t.Context(), key.client, key.scope, d); err != nil {
				t.Fatalf("save for %.9q, %.9v: %v", key.client, key.scope, err)
			}
			if before, ok := want[key]; !ok || latest(before) <= latest(d) {
				want[key] = inMicroseconds(d)
			}
			continue
		}
		got, err := st.LoadDelivery(t.Context(), key.client, key.scope)
		if err != nil || !reflect.DeepEqual(got, want[key]) {
			t.Fatalf("load for %.9q, %.9v: %+v, want %+v: %v", key.client, key.scope, got, want[key], err)
		}
	}
	for _, key := range keys {
		got, err := stores[0].LoadDelivery(t.Context(), key.client, key.scope)
		if err != nil || !reflect.DeepEqual(got, want[key]) {
			t.Errorf("in the end %.9q, %.9v: %+v, want %+v: %v", key.client, key.scope, got, want[key], err)
		}
	}
}

// concurrentDeliveries lets each store save the deliveries of one webhook in its own order.
// All fields derive from the time. A load must never return a mixture or an earlier delivery
// than the load before. In the end it must return the latest.
func concurrentDeliveries(t *testing.T, stores []*sqlstore.Store) {
	const rounds, saves = 5, 30
	base := time.Now().UnixMicro()
	at := func(n int) deliver.Record {
		moment := time.UnixMicro(base + int64(n)).UTC()
		return deliver.Record{
			Since: moment, Stopped: n%2 > 0, Reason: deliveryReasons[n%len(deliveryReasons)],
			LastSuccess: moment.Add(-time.Microsecond), LastFailure: moment, FirstFailure: moment.Add(-time.Minute),
		}
	}
	for round := range rounds {
		client := fmt.Sprint("concurrent-", round)
		group, ctx := errgroup.WithContext(t.Context())
		for _, st := range stores {
			group.Go(func() error {
				for _, n := range rand.Perm(saves) {
					if err := st.SaveDelivery(ctx, client, webhookcfg.All(), at(n)); err != nil {
						return err
					}
				}
				return nil
			})
			group.Go(func() error {
				for before := int64(0); before < latest(at(saves-1)); {
					d, err := st.LoadDelivery(ctx, client, webhookcfg.All())
					if err != nil {
						return err
					}
					if d.Since.IsZero() {
						continue
					}
					if n := int(d.Since.UnixMicro() - base); !reflect.DeepEqual(d, at(n)) || latest(d) < before {
						return fmt.Errorf("loaded %+v after one of %d", d, before)
					}
					before = latest(d)
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// SweepsDeliveries checks that a sweep deletes deliveries without an attempt in 90 days. It
// must keep all others, even if they're saved during the sweep.
func SweepsDeliveries(t *testing.T, st *sqlstore.Store) {
	const many, day = 600, 24 * time.Hour
	now := time.Now()
	save := func(ctx context.Context, n int, at time.Time) error {
		return st.SaveDelivery(ctx, "expiring", webhookcfg.Entity(fmt.Sprint("e", n)), deliver.Record{LastSuccess: at})
	}
	if _, err := st.Sweep(t.Context(), math.MaxInt); err != nil { // rows that other tests left behind
		t.Fatal(err)
	}
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(8)
	for n := range many {
		group.Go(func() error { return save(ctx, n, now.Add(-91*day)) })
	}
	group.Go(func() error { return save(ctx, many, now.Add(-89*day)) })
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	sweeping, ctx := errgroup.WithContext(t.Context())
	removed := make(chan int, many)
	for range 2 {
		sweeping.Go(func() error {
			n, err := st.Sweep(ctx, many)
			removed <- n
			return err
		})
	}
	const saved = 10
	for n := range saved {
		sweeping.Go(func() error { return save(ctx, n, now) })
	}
	if err := sweeping.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := <-removed + <-removed; n < many-saved || n > many {
		t.Errorf("the sweeps removed %d of %d", n, many)
	}
	for n := range many + 1 {
		if n > saved && n < many-saved {
			continue
		}
		d, err := st.LoadDelivery(t.Context(), "expiring", webhookcfg.Entity(fmt.Sprint("e", n)))
		if kept := n < saved || n == many; err != nil || !d.LastSuccess.IsZero() != kept {
			t.Errorf("delivery %d after the sweeps: %+v, %v", n, d, err)
		}
	}
}
