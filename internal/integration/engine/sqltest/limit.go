package sqltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"golang.org/x/sync/errgroup"
)

// Trigger is the trigger that limits overrides.
type Trigger struct {
	File    string           // in the directory limit of package sqlstore
	Refused func(error) bool // whether an error is the trigger's
	Drop    string           // a statement that removes what's left when the tables are dropped
	// Double is a statement that doubles the overrides that are off, by appending {n} to their
	// names, and Analyze one that makes the planner know that. Read returns how many rows of {prefix}override were read on the
	// pool's only connection. LimitReads needs these.
	Double, Analyze string
	Read            func(t testing.TB, db *sql.DB, prefix string) int64
}

// script returns the file.
func (tr Trigger) script(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../../store/sqlstore/limit/" + tr.File)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// create creates the trigger and its index. The limit is a number or an expression.
func (tr Trigger) create(t *testing.T, db *sql.DB, prefix, limit string) {
	t.Helper()
	script := strings.NewReplacer("wh_", prefix, " 500", " "+limit, "//\nDELIMITER ;\n", "").Replace(tr.script(t))
	for statement := range strings.SplitSeq(script, ";\n\nDELIMITER //\n") {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if tr.Drop != "" {
		t.Cleanup(func() {
			if _, err := db.Exec(strings.ReplaceAll(tr.Drop, "wh_", prefix)); err != nil {
				t.Error(err)
			}
		})
	}
}

var tooMany = webhookcfg.Refusal{Code: "too_many_overrides", Description: "The plan has no more overrides"}

// limited is a store with a trigger.
type limited struct {
	*sqlstore.Store
	refused func(error) bool
}

func (l limited) Apply(ctx context.Context, c webhookcfg.Change) error {
	err := l.Store.Apply(ctx, c)
	if err != nil && l.refused(err) {
		return fmt.Errorf("%w: %w", tooMany, err)
	}
	return err
}

// Limit checks that concurrent changes through several stores never exceed the limit of a
// trigger, and that they can reach it. All stores use the tables with the prefix.
func Limit(t *testing.T, db *sql.DB, prefix string, stores []*sqlstore.Store, trigger Trigger) {
	const limit = 5
	trigger.create(t, db, prefix, strconv.Itoa(limit))
	var handlers []*webhookcfg.Handler
	for _, st := range stores {
		handlers = append(handlers, hooktest.NewHandler(t, limited{st, trigger.Refused}, hooktest.NewVerifier(t, "id", "a-long-random-secret"), &webhookcfg.Options{
			ProbeMode: webhookcfg.ProbeOff,
			Refusals:  []webhookcfg.Refusal{tooMany},
		}))
	}
	l := limits{t, handlers}

	clients := []string{"a", "b", "c"}
	for range 3 { // each change of all starts a new generation
		var group errgroup.Group
		var made atomic.Int32
		for i := range 4 * limit {
			for _, client := range clients {
				group.Go(func() error {
					err := handlers[i%len(handlers)].Set(t.Context(), client, webhookcfg.Entity(fmt.Sprint("e", i)), "https://hooks.example.com/in")
					if err == nil {
						made.Add(1)
						return nil
					}
					if e, ok := errors.AsType[*webhookcfg.Error](err); !ok || e.Status != 403 || e.Code != tooMany.Code || e.Description != tooMany.Description {
						return err
					}
					return nil
				})
			}
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		if made := int(made.Load()); made != limit*len(clients) {
			t.Errorf("%d sets succeeded, want %d for each of %d clients", made, limit, len(clients))
		}
		for _, client := range clients {
			l.full(client, limit)
		}
		if err := handlers[0].Set(t.Context(), "c", webhookcfg.All(), "https://hooks.example.com/all"); err != nil {
			t.Fatal(err)
		}
		for _, client := range clients[:2] {
			if err := handlers[0].Unset(t.Context(), client, webhookcfg.All()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// LimitOfPlan checks what the file says about a limit for each client: one that the table of plans
// doesn't have gets the default.
func LimitOfPlan(t *testing.T, db *sql.DB, prefix string, st *sqlstore.Store, trigger Trigger) {
	const few, limit = 2, 5
	documented := regexp.MustCompile(`COALESCE\(.*\), 500\)`).FindString(trigger.script(t))
	expression := strings.NewReplacer(" plan", " "+prefix+"plan", "500", strconv.Itoa(limit)).Replace(documented)
	exec := func(statement string) {
		t.Helper()
		if _, err := db.Exec(strings.ReplaceAll(statement, "{plan}", prefix+"plan")); err != nil {
			t.Fatal(err)
		}
	}
	exec("CREATE TABLE {plan} (client varchar(100) PRIMARY KEY, most integer NOT NULL)")
	t.Cleanup(func() { exec("DROP TABLE {plan}") })
	exec(fmt.Sprintf("INSERT INTO {plan} (client, most) VALUES ('planned', %d)", few))
	trigger.create(t, db, prefix, expression)

	for client, want := range map[string]int{"planned": few, "unplanned": limit} {
		for n := range limit + 1 {
			change := webhookcfg.SetChange(client, webhookcfg.Entity(fmt.Sprint("e", n)), egress.NewURL("https://hooks.example.com/in"))
			change.Time = time.Now().Truncate(time.Microsecond)
			if err := st.Apply(t.Context(), change); (err == nil) != (n < want) || err != nil && !trigger.Refused(err) {
				t.Errorf("%s, with %d of at most %d overrides: %v", client, n, want, err)
			}
		}
	}
}

type limits struct {
	*testing.T
	handlers []*webhookcfg.Handler
}

// full checks a client that has as many overrides as it may have.
func (t limits) full(client string, limit int) {
	t.Helper()
	h := t.handlers[0]
	set := func(entity string) error {
		return h.Set(t.Context(), client, webhookcfg.Entity(entity), "https://hooks.example.com/again")
	}
	page, err := h.List(t.Context(), client, "", 100)
	if err != nil || len(page.Overrides) != limit {
		t.Fatalf("%s: %d overrides, %v; want %d", client, len(page.Overrides), err, limit)
	}
	first := page.Overrides[0].Entity
	if err := set("new"); !errors.Is(err, tooMany) {
		t.Errorf("%s: a set beyond the limit: got %v", client, err)
	}
	if err := set(first); err != nil {
		t.Errorf("%s: a set that replaces an override: got %v", client, err)
	}
	if err := h.Unset(t.Context(), client, webhookcfg.Entity("another")); err != nil {
		t.Errorf("%s: an unset: got %v", client, err)
	}
	if err := h.Unset(t.Context(), client, webhookcfg.Entity(first)); err != nil {
		t.Errorf("%s: an unset of an override: got %v", client, err)
	}
	if err := set("new"); err != nil {
		t.Errorf("%s: a set after an unset: got %v", client, err)
	}
	if err := set(first); !errors.Is(err, tooMany) {
		t.Errorf("%s: a set that turns an override on beyond the limit: got %v", client, err)
	}
	if err := h.Unset(t.Context(), client, webhookcfg.Entity(first)); err != nil {
		t.Errorf("%s: an unset beyond the limit: got %v", client, err)
	}
}

// limit tests the trigger on new tables.
func (e Engine) limit(t *testing.T) {
	dsn := e.Shared(t).DSN()
	db := e.Open(t, dsn)
	name := prefix(t, db)
	stores := []*sqlstore.Store{e.store(t, db, name)}
	migrate(t, stores[0])
	for range replicaCount - 1 {
		stores = append(stores, e.store(t, e.Open(t, dsn), name))
	}
	Limit(t, db, name, stores, e.Limit)
}

// limitOfPlan tests the trigger with a table of plans.
func (e Engine) limitOfPlan(t *testing.T) {
	db := e.Open(t, e.Shared(t).DSN())
	name := prefix(t, db)
	st := e.store(t, db, name)
	migrate(t, st)
	LimitOfPlan(t, db, name, st, e.Limit)
}

// limitReads checks that a set of a client reads no more rows than it may have overrides, however
// many of its entities are off.
func (e Engine) limitReads(t *testing.T) {
	db := e.Open(t, e.Shared(t).DSN())
	db.SetMaxOpenConns(1)
	name := prefix(t, db)
	st := e.store(t, db, name)
	migrate(t, st)
	const limit, doublings = 5, 14
	e.Limit.create(t, db, name, strconv.Itoa(limit))

	h := hooktest.NewHandler(t, st, hooktest.NewVerifier(t, "id", "a-long-random-secret"), &webhookcfg.Options{ProbeMode: webhookcfg.ProbeOff})
	set := func(scope webhookcfg.Scope) {
		t.Helper()
		if err := h.Set(t.Context(), "a", scope, "https://hooks.example.com/in"); err != nil {
			t.Fatal(err)
		}
	}
	set(webhookcfg.All())
	set(webhookcfg.Entity("on"))
	if err := h.Unset(t.Context(), "a", webhookcfg.Entity("off")); err != nil {
		t.Fatal(err)
	}
	for n := range doublings {
		statement := strings.NewReplacer("{prefix}", name, "{n}", fmt.Sprintf("%02d", n)).Replace(e.Limit.Double)
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			if _, err := db.ExecContext(t.Context(), strings.ReplaceAll(e.Limit.Analyze, "{prefix}", name)); err != nil {
				t.Fatal(err)
			}
		}
		for range 10 { // a plan can change after a few uses
			before := e.Limit.Read(t, db, name)
			set(webhookcfg.Entity("on"))
			if read := e.Limit.Read(t, db, name) - before; read == 0 || read > 10*limit {
				t.Fatalf("with %d entities off, a set read %d rows (analyzed: %t)", 1<<doublings, read, analyzed)
			}
		}
	}
}
