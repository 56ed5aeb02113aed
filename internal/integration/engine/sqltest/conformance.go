package sqltest

import (
	"errors"
	"regexp"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

// conformance runs all cases of package storetest. Each process that a case simulates has
// connections of its own.
func (e Engine) conformance(t *testing.T) {
	e.runCases(t, e.Shared(t), func(string) bool { return true }, func() error { return nil })
}

// valueCase matches the cases about values, ended contexts and optional interfaces. The
// others are about statements and transactions, which are the same for every driver.
var valueCase = regexp.MustCompile(`^(03 an|08|09|10|11|12|13|15|errors|feed|lister (lists|starts|refuses)|versioner) `)

func (e Engine) values(t *testing.T) {
	e.runCases(t, e.Shared(t), valueCase.MatchString, func() error { return nil })
}

// durability runs the cases that reopen a store, with a server that is killed and
// started again in between.
func (e Engine) durability(t *testing.T) {
	server := e.Unsynced(t)
	server.SkipIfExternal(t)
	restarts := 0
	restart := func() error { restarts++; return errors.Join(server.Kill(), server.Restart()) }
	e.runCases(t, server, func(name string) bool { return strings.Contains(name, "reopen") }, restart)
	if restarts == 0 {
		t.Error("no case reopened a store")
	}
}

// runCases runs the chosen cases. Between the closing and the opening of a store it calls
// restart.
func (e Engine) runCases(t *testing.T, server *engine.Server, chosen func(name string) bool, restart func() error) {
	t.Helper()
	for _, c := range storetest.Cases() {
		if !chosen(c.Name) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			admin := e.Open(t, server.DSN())
			admin.SetMaxIdleConns(-1) // a restart ends connections
			name := prefix(t, admin)
			open := func(webhookcfg.Store) webhookcfg.Store {
				st := e.store(t, e.Open(t, server.DSN()), name)
				migrate(t, st)
				return st
			}
			env := storetest.Env{Store: open(nil), OpenPeer: open, Reopen: func(webhookcfg.Store) webhookcfg.Store {
				if err := restart(); err != nil {
					t.Fatal(err)
				}
				return open(nil)
			}}
			switch err := c.Check(t.Context(), env); {
			case errors.Is(err, storetest.ErrAbsent):
				t.Skip(err)
			case err != nil:
				t.Error(err)
			}
		})
	}
}
