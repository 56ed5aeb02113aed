package sqltest

import (
	"testing"

	"example.com/go-webhookcfg/internal/integration/linearizable"
)

// A server takes longer than memory, and needs fewer rounds for as much to overlap.
func hot() linearizable.Setting {
	setting := linearizable.Hot()
	setting.Rounds = 12
	return setting
}

func spread() linearizable.Setting {
	setting := linearizable.Spread()
	setting.Operations, setting.Rounds = 15, 6
	return setting
}

func (e Engine) linearizable(t *testing.T) {
	dsn := e.Shared.Get(t).DSN()
	for name, setting := range map[string]linearizable.Setting{"hot": hot(), "spread": spread()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			linearizable.Check(t, setting, func(t testing.TB) []linearizable.Store { return e.fleet(t, dsn) })
		})
	}
}

// broken has the checks catch stores that do without what makes ours linearizable.
func (e Engine) broken(t *testing.T) {
	dsn := e.Shared.Get(t).DSN()
	setting := spread()
	setting.Clients, setting.Rounds = 6, 100 // as many as it takes
	for name, inTransaction := range map[string]bool{"two statements": false, "transaction": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			linearizable.MustFail(t, setting, func(t testing.TB) []linearizable.Store {
				return e.naiveFleet(t, dsn, inTransaction)
			})
		})
	}
}
