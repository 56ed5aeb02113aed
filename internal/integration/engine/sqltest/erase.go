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
	ctx := t.Context()
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	count := func(table string) (n int) {
		t.Helper()
		must(db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+prefix+table).Scan(&n))
		return n
	}
	generation := func() (gen int64) {
		t.Helper()
		must(db.QueryRowContext(ctx, "SELECT gen FROM "+prefix+"client").Scan(&gen))
		return gen
	}
	version := func() string {
		t.Helper()
		versions, err := st.Versions(ctx, []string{"gone"})
		must(err)
		return versions[0]
	}
	_, err := st.Changes(ctx, "")
	hasFeed := !errors.Is(err, errors.ErrUnsupported)
	poll := func(since string) (changes cache.Changes) {
		t.Helper()
		if hasFeed {
			changes, err = st.Changes(ctx, since)
			must(err)
		}
		return changes
	}
	set := func(scope webhookcfg.Scope) error {
		return st.Apply(ctx, webhookcfg.SetChange("gone", scope, egress.NewURL("https://gone.example.com/t0ken")))
	}
	unset := func(scope webhookcfg.Scope) error { return st.Apply(ctx, webhookcfg.UnsetChange("gone", scope)) }

	neverSeen, beforeAll := version(), poll("").Next
	one := deliver.Record{LastSuccess: time.Now()}
	for name, set := range map[string]func() error{
		"an override": func() error { return set(webhookcfg.Entity("e1")) },
		"a base":      func() error { return set(webhookcfg.All()) },
	} {
		must(set(), st.SaveDelivery(ctx, "gone", webhookcfg.All(), one), st.Erase(ctx, "gone"))
		if count("delivery") != 1 || count("client WHERE vacated = 0") != 1 {
			t.Errorf("with %s, an erase left %d deliveries", name, count("delivery"))
		}
		must(unset(webhookcfg.All()), st.Erase(ctx, "gone"))
	}
	must(set(webhookcfg.Entity("e1")), unset(webhookcfg.All()))
	if removed, err := st.Sweep(ctx, 10); err != nil || removed != 1 || count("client") != 1 {
		t.Errorf("a sweep of a client that was emptied a moment ago removed %d rows: %v", removed, err)
	}
	must(set(webhookcfg.Entity("e1")), set(webhookcfg.All()), set(webhookcfg.Entity("e2")), unset(webhookcfg.Entity("e3")))
	for n := range 1100 { // more than one transaction
		scope := webhookcfg.Entity(fmt.Sprint("d", n))
		must(st.SaveDelivery(ctx, "gone", scope, deliver.Record{LastSuccess: time.Now()}))
	}
	configured, away := version(), poll("").Next
	must(st.Erase(ctx, "gone"))
	hook, err := st.Resolve(ctx, "gone", "e2")
	if must(err); hook.Source != webhookcfg.SourceOverride || count("delivery") != 1100 {
		t.Errorf("an erase of a client with webhooks changed it: %v, %d deliveries", hook, count("delivery"))
	}

	must(unset(webhookcfg.All()))
	vacated, upToDate := version(), poll(beforeAll).Next
	for hasFeed && !strings.HasSuffix(upToDate, "/") { // other transactions are running now, but none would after an hour
		upToDate = poll(upToDate).Next
	}
	must(st.Erase(ctx, "gone"), st.Erase(ctx, "another"))
	if count("override") > 0 || count("delivery") > 0 || count("client") != 1 {
		t.Errorf("%d overrides, %d deliveries and %d clients are left", count("override"), count("delivery"), count("client"))
	}
	must(st.SaveDelivery(ctx, "gone", webhookcfg.All(), deliver.Record{LastSuccess: time.Now()})) // this one is late
	if removed, err := st.Sweep(ctx, 10); err != nil || removed > 0 || version() != vacated {
		t.Errorf("a sweep removed %d rows a moment after the unset: %v", removed, err)
	}
	last := generation()
	must(age(ctx, db, prefix))
	if removed, err := st.Sweep(ctx, 10); err != nil || removed != 1 || count("client") > 0 || count("delivery") > 0 {
		t.Errorf("a sweep removed %d rows an hour after the unset, %d clients and %d deliveries are left: %v", removed, count("client"), count("delivery"), err)
	}

	erased := version()
	for _, earlier := range []string{neverSeen, configured, vacated} {
		if earlier == erased {
			t.Errorf("the version is %s, as before", erased)
		}
	}
	if hasFeed {
		for name, since := range map[string]string{"before the client": beforeAll, "before its last change": away} {
			if changes := poll(since); !changes.Reset {
				t.Errorf("a reader that was away since %s: %+v", name, changes)
			}
		}
		changes := poll(upToDate)
		if changes.Reset || len(changes.Clients) > 0 || poll(changes.Next).Reset {
			t.Errorf("a reader that knew of the unset: %+v", changes)
		}
	}

	must(set(webhookcfg.Entity("e9")))
	if hasFeed {
		if changes := poll(upToDate); changes.Reset || !slices.Equal(changes.Clients, []string{"gone"}) {
			t.Errorf("after a set: %+v", changes)
		}
	}
	page, err := st.List(ctx, "gone", "", 10)
	if must(err); page.Base.Source != webhookcfg.SourceNone || len(page.Overrides) != 1 || page.Overrides[0].Entity != "e9" {
		t.Errorf("the client of the same name has %v", page)
	}
	record, err := st.LoadDelivery(ctx, "gone", webhookcfg.All())
	if must(err); record != (deliver.Record{}) || generation() <= last || version() == erased {
		t.Errorf("the client of the same name has the record %v, generation %d after %d", record, generation(), last)
	}

	// A sweep looks only once at a client that has overrides but no base.
	must(unset(webhookcfg.Entity("e8")), age(ctx, db, prefix))
	if removed, err := st.Sweep(ctx, 10); err != nil || removed > 0 || count("client WHERE vacated = 0") != 1 {
		t.Errorf("a sweep removed %d rows of a client with an override: %v", removed, err)
	}
	must(unset(webhookcfg.Entity("e9")), age(ctx, db, prefix))
	if removed, err := st.Sweep(ctx, 10); err != nil || removed != 1 || count("client") > 0 {
		t.Errorf("a sweep removed %d rows after the last override: %v", removed, err)
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
