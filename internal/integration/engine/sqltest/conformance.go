package sqltest

import (
	"database/sql"
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

// part is a part of package storetest's suite.
type part int

const (
	values      part = iota // depends on the driver: values, contexts, optional interfaces
	statements              // depends only on the statements
	concurrency             // also depends on the isolation level
	durability              // reopens the store
	repeated                // another case with several handles repeats it
)

var (
	valueCase = regexp.MustCompile(`^(03 an|08|09|10|11|12|13|15|errors|` +
		`feed (starts|resets|accepts|refuses)|lister (lists|starts|refuses)|versioner (returns|keeps|refuses)) `)
	concurrentCase = regexp.MustCompile(`^(02 .* while|03 .* concurrent|14|eraser .* concurrent|feed .* (concurrently|early)|lister .* one state|versioner .* concurrently)`)
)

// partOf returns the part of a case.
func partOf(c storetest.Case) part {
	const several = ", through several handles"
	isRepeated := func(other storetest.Case) bool { return other.Name == c.Name+several }
	switch {
	case strings.Contains(c.Name, "reopen"), strings.Contains(c.Name, "crash"):
		return durability
	case valueCase.MatchString(c.Name) && !strings.HasSuffix(c.Name, several):
		return values
	case slices.ContainsFunc(storetest.Cases(), isRepeated):
		return repeated
	case concurrentCase.MatchString(c.Name):
		return concurrency
	}
	return statements
}

func (e Engine) values(t *testing.T) { e.runCases(t, values) }

func (e Engine) statements(t *testing.T) { e.runCases(t, statements) }

func (e Engine) concurrency(t *testing.T) { e.runCases(t, concurrency) }

// durability kills the server and starts it again while a store is closed.
func (e Engine) durability(t *testing.T) {
	server := e.Unsynced(t)
	server.SkipIfExternal(t)
	for _, c := range storetest.Cases() {
		if partOf(c) != durability {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			const most = 12 // the histories reopen the store far more often
			restarts := 0
			e.runCase(t, server, c, func() error {
				if restarts == most {
					return nil
				}
				restarts++
				return errors.Join(server.Kill(), server.Restart())
			})
			if restarts == 0 {
				t.Error("the case reopened no store")
			}
		})
	}
}

// runCases runs the cases of a part on the shared server. Each process that a case simulates
// gets its own connections.
func (e Engine) runCases(t *testing.T, part part) {
	t.Helper()
	server := e.Shared(t)
	for _, c := range storetest.Cases() {
		if partOf(c) != part {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			e.runCase(t, server, c, func() error { return nil })
		})
	}
}

// runCase runs a case. When a case closes or crashes a store, runCase calls restart before
// the case opens it again.
func (e Engine) runCase(t *testing.T, server *engine.Server, c storetest.Case, restart func() error) {
	t.Helper()
	admin := e.Open(t, server.DSN())
	admin.SetMaxIdleConns(-1) // a restart ends connections
	name := prefix(t, admin)
	var last *sql.DB
	open := func(webhookcfg.Store) webhookcfg.Store {
		last = e.Open(t, server.DSN())
		st := e.store(t, last, name)
		migrate(t, st)
		return st
	}
	reopen := func(end func() error) func(webhookcfg.Store) webhookcfg.Store {
		return func(webhookcfg.Store) webhookcfg.Store {
			if err := errors.Join(end(), restart()); err != nil {
				t.Fatal(err)
			}
			return open(nil)
		}
	}
	env := storetest.Env{
		Store:    open(nil),
		OpenPeer: open,
		Reopen:   reopen(func() error { return last.Close() }),
		Crash:    reopen(func() error { return nil }),
	}
	switch err := c.Check(t.Context(), env); {
	case errors.Is(err, storetest.ErrAbsent):
		t.Skip(err)
	case err != nil:
		t.Error(err)
	}
}
