package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

// age makes clients with nothing set look as if they had been like that for a long time.
func age(ctx context.Context, db *sql.DB, prefix string) error {
	_, err := db.ExecContext(ctx, "UPDATE "+prefix+"client SET vacated = 1 WHERE vacated > 1")
	return err
}

// erase tests erased clients on new tables.
func (e Engine) erase(t *testing.T) {
	for name, test := range map[string]func(*testing.T, *sql.DB, string, *sqlstore.Store){
		"reader that was away": Erase, "followers": Follow, "clients": Clients, "view": View,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := e.Open(t, e.Shared(t).DSN())
			name := prefix(t, db)
			st := e.store(t, db, name)
			migrate(t, st)
			test(t, db, name, st)
		})
	}
}

// Erase erases a client. It checks that nothing of it is left, that a new client with the
// same name inherits nothing, and that no reader vouches for old entries, even after a long
// absence.
func Erase(t *testing.T, db *sql.DB, prefix string, st *sqlstore.Store) {
	_, err := st.Changes(t.Context(), "")
	e := &erasure{T: t, db: db, prefix: prefix, store: st, hasFeed: !errors.Is(err, errors.ErrUnsupported)}
	neverSeen, beforeAll := e.version(), e.changes("").Next
	e.keepsClientsWithWebhooks()
	configured, away := e.version(), e.changes("").Next
	upToDate := e.removesRows(beforeAll)
	vacated, last := e.version(), e.count("client", "gen")
	e.sweepsLater(vacated)
	erased := e.version()
	for _, earlier := range []string{neverSeen, configured, vacated} {
		if earlier == erased {
			t.Errorf("the version is %s, as before", erased)
		}
	}
	e.readersNotice(beforeAll, away, upToDate)
	e.leavesNothingToANamesake(last, erased)
	e.sweepsOnlyEmptyClients()
}

// erasure is the test of one client, gone.
type erasure struct {
	*testing.T
	db      *sql.DB
	prefix  string
	store   *sqlstore.Store
	hasFeed bool
}

func (e *erasure) must(errs ...error) {
	e.Helper()
	if err := errors.Join(errs...); err != nil {
		e.Fatal(err)
	}
}

// count returns an expression over a table, such as COUNT(*).
func (e *erasure) count(table, expression string) (n int64) {
	e.Helper()
	e.must(e.db.QueryRowContext(e.Context(), "SELECT "+expression+" FROM "+e.prefix+table).Scan(&n))
	return n
}

func (e *erasure) rows(table string) int64 { e.Helper(); return e.count(table, "COUNT(*)") }

func (e *erasure) version() string {
	e.Helper()
	versions, err := e.store.Versions(e.Context(), []string{"gone"})
	e.must(err)
	return versions[0]
}

// changes returns none if the store has no feed.
func (e *erasure) changes(since string) (changes cache.Changes) {
	e.Helper()
	if e.hasFeed {
		var err error
		changes, err = e.store.Changes(e.Context(), since)
		e.must(err)
	}
	return changes
}

func (e *erasure) set(scope webhookcfg.Scope) error {
	return e.store.Apply(e.Context(), webhookcfg.SetChange("gone", scope, egress.NewURL("https://gone.example.com/t0ken")))
}

func (e *erasure) unset(scope webhookcfg.Scope) error {
	return e.store.Apply(e.Context(), webhookcfg.UnsetChange("gone", scope))
}

func (e *erasure) erase(client string) error { return e.store.Erase(e.Context(), client) }

func (e *erasure) saveDelivery(scope webhookcfg.Scope) error {
	return e.store.SaveDelivery(e.Context(), "gone", scope, deliver.Record{LastSuccess: time.Now()})
}

// sweep checks how many rows a sweep removes.
func (e *erasure) sweep(when string, want int) {
	e.Helper()
	if removed, err := e.store.Sweep(e.Context(), 10); err != nil || removed != want {
		e.Errorf("%s, a sweep removed %d rows, want %d: %v", when, removed, want, err)
	}
}

// keepsClientsWithWebhooks ends with a client that has a base, overrides and deliveries.
func (e *erasure) keepsClientsWithWebhooks() {
	for name, scope := range map[string]webhookcfg.Scope{"an override": webhookcfg.Entity("e1"), "a base": webhookcfg.All()} {
		e.must(e.set(scope), e.saveDelivery(webhookcfg.All()), e.erase("gone"))
		if e.rows("delivery") != 1 || e.rows("client WHERE vacated = 0") != 1 {
			e.Errorf("with %s, an erase left %d deliveries", name, e.rows("delivery"))
		}
		e.must(e.unset(webhookcfg.All()), e.erase("gone"))
	}
	e.must(e.set(webhookcfg.Entity("e1")), e.unset(webhookcfg.All()))
	e.sweep("a moment after the unset", 1)
	if e.rows("client") != 1 {
		e.Error("the sweep removed more than the delivery")
	}
	e.must(e.set(webhookcfg.Entity("e1")), e.set(webhookcfg.All()), e.set(webhookcfg.Entity("e2")), e.unset(webhookcfg.Entity("e3")))
	for n := range 1100 { // more than one transaction
		e.must(e.saveDelivery(webhookcfg.Entity(fmt.Sprint("d", n))))
	}
	e.must(e.erase("gone"))
	hook, err := e.store.Resolve(e.Context(), "gone", "e2")
	if e.must(err); hook.Source != webhookcfg.SourceOverride || e.rows("delivery") != 1100 {
		e.Errorf("an erase of a client with webhooks changed it: %v, %d deliveries", hook, e.rows("delivery"))
	}
}

// removesRows unsets and erases. It returns the cursor of a reader that knows of the unset.
func (e *erasure) removesRows(beforeAll string) (upToDate string) {
	e.must(e.unset(webhookcfg.All()))
	upToDate = e.changes(beforeAll).Next
	for e.hasFeed && !strings.HasSuffix(upToDate, "/") { // other transactions are running now, but none would after an hour
		upToDate = e.changes(upToDate).Next
	}
	e.must(e.erase("gone"), e.erase("another"))
	if e.rows("override") > 0 || e.rows("delivery") > 0 || e.rows("client") != 1 {
		e.Errorf("%d overrides, %d deliveries and %d clients are left", e.rows("override"), e.rows("delivery"), e.rows("client"))
	}
	return upToDate
}

// sweepsLater: the row of the client goes an hour after the unset, with a record that came
// late.
func (e *erasure) sweepsLater(vacated string) {
	e.must(e.saveDelivery(webhookcfg.All()))
	e.sweep("a moment after the unset", 0)
	if e.version() != vacated {
		e.Error("a sweep a moment after the unset changed the version")
	}
	e.must(age(e.Context(), e.db, e.prefix))
	e.sweep("an hour after the unset", 1)
	if e.rows("client") > 0 || e.rows("delivery") > 0 {
		e.Errorf("%d clients and %d deliveries are left", e.rows("client"), e.rows("delivery"))
	}
}

func (e *erasure) readersNotice(beforeAll, away, upToDate string) {
	if e.hasFeed {
		for name, since := range map[string]string{"before the client": beforeAll, "before its last change": away} {
			if changes := e.changes(since); !changes.Reset {
				e.Errorf("a reader that was away since %s: %+v", name, changes)
			}
		}
		changes := e.changes(upToDate)
		if changes.Reset || len(changes.Clients) > 0 || e.changes(changes.Next).Reset {
			e.Errorf("a reader that knew of the unset: %+v", changes)
		}
	}
	e.must(e.set(webhookcfg.Entity("e9")))
	if e.hasFeed {
		if changes := e.changes(upToDate); changes.Reset || !slices.Equal(changes.Clients, []string{"gone"}) {
			e.Errorf("after a set: %+v", changes)
		}
	}
}

// leavesNothingToANamesake: the client of the same name has only e9, which it has set.
func (e *erasure) leavesNothingToANamesake(last int64, erased string) {
	page, err := e.store.List(e.Context(), "gone", "", 10)
	if e.must(err); page.Base.Source != webhookcfg.SourceNone || len(page.Overrides) != 1 || page.Overrides[0].Entity != "e9" {
		e.Errorf("the client of the same name has %v", page)
	}
	record, err := e.store.LoadDelivery(e.Context(), "gone", webhookcfg.All())
	if e.must(err); record != (deliver.Record{}) || e.count("client", "gen") <= last || e.version() == erased {
		e.Errorf("the client of the same name has the record %v, generation %d after %d", record, e.count("client", "gen"), last)
	}
}

// sweepsOnlyEmptyClients: a sweep looks only once at a client that has overrides but no base.
func (e *erasure) sweepsOnlyEmptyClients() {
	e.must(e.unset(webhookcfg.Entity("e8")), age(e.Context(), e.db, e.prefix))
	e.sweep("with an override", 0)
	if e.rows("client WHERE vacated = 0") != 1 {
		e.Error("a sweep looks again at a client with an override")
	}
	e.must(e.unset(webhookcfg.Entity("e9")), age(e.Context(), e.db, e.prefix))
	e.sweep("after the last override", 1)
	if e.rows("client") > 0 {
		e.Error("a client is left")
	}
}

// Follow changes clients while their rows are deleted at once. It checks that readers that
// poll now and then end up with the final state.
func Follow(t *testing.T, db *sql.DB, prefix string, st *sqlstore.Store) {
	const clients, each = 4, 120
	name := func(n int) string { return fmt.Sprint("client-", n) }
	stop := make(chan struct{})
	var readers, sweeper errgroup.Group
	readers.Go(func() error { return followFeed(t.Context(), st, stop) })
	readers.Go(func() error {
		return followVersions(t.Context(), st, []string{name(0), name(1), name(2), name(3)}, stop)
	})
	sweeper.Go(func() error { return sweepUntil(t.Context(), stop, st, func() { _ = age(t.Context(), db, prefix) }) })
	var writers errgroup.Group
	for n := range clients {
		writers.Go(func() error {
			for i := range each {
				if err := st.Apply(t.Context(), anyChange(name(n), i)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := writers.Wait()
	close(stop)
	if err := errors.Join(err, readers.Wait(), sweeper.Wait()); err != nil {
		t.Error(err)
	}
}

// contents returns the result of List for a client, as text.
func contents(ctx context.Context, st *sqlstore.Store, client string) (string, error) {
	page, err := st.List(ctx, client, "", 100)
	var text strings.Builder
	fmt.Fprint(&text, page.Base.Source, page.Base.URL.Reveal())
	for _, o := range page.Overrides {
		fmt.Fprint(&text, " ", o.Entity, o.Webhook.Source, o.Webhook.URL.Reveal())
	}
	return text.String(), err
}

// rests pauses a follower for a random time. It returns true if the follower should poll once
// more and end.
func rests(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	case <-time.After(rand.N(20 * time.Millisecond)):
		return false
	}
}

// followFeed keeps a copy of all clients up to date with the feed, and compares it with the
// store at the end.
func followFeed(ctx context.Context, st *sqlstore.Store, stop <-chan struct{}) error {
	kept := make(map[string]string)
	for since, last := "", false; ; last = rests(stop) {
		changes, err := st.Changes(ctx, since)
		if errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		if err != nil {
			return err
		}
		if changes.Reset {
			clear(kept)
		}
		for _, client := range changes.Clients {
			delete(kept, client)
		}
		since = changes.Next
		for n := range 4 {
			client := fmt.Sprint("client-", n)
			now, err := contents(ctx, st, client)
			if err != nil {
				return err
			}
			if before, ok := kept[client]; ok && last && before != now {
				return fmt.Errorf("the copy of %s has %s, the store %s", client, before, now)
			} else if !ok {
				kept[client] = now
			}
		}
		if last {
			return nil
		}
	}
}

// followVersions does the same with versions.
func followVersions(ctx context.Context, st *sqlstore.Store, clients []string, stop <-chan struct{}) error {
	kept, at := make(map[string]string), make(map[string]string)
	for last := false; ; last = rests(stop) {
		versions, err := st.Versions(ctx, clients)
		if err != nil {
			return err
		}
		for n, client := range clients {
			now, err := contents(ctx, st, client)
			switch {
			case err != nil:
				return err
			case at[client] != versions[n]:
				kept[client], at[client] = now, versions[n]
			case last && kept[client] != now:
				return fmt.Errorf("the copy of %s has %s, the store %s", client, kept[client], now)
			}
		}
		if last {
			return nil
		}
	}
}
