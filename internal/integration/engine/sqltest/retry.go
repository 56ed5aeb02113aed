package sqltest

import (
	"context"
	"errors"
	"testing"

	"example.com/go-webhookcfg/internal/integration/engine"
	"example.com/go-webhookcfg/internal/integration/linearizable"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// cutHistories has connections cut in the middle of histories, and catches a store
// that makes a change again whose outcome it does not know.
func (e Engine) cutHistories(t *testing.T, server *engine.Server) {
	t.Helper()
	proxy := engine.NewProxy(t, server.Addr())
	setting := linearizable.Setting{Clients: 1, Goroutines: []int{6}, Operations: 25, Rounds: 5}
	setting.Disturb = func() error {
		proxy.Lose(engine.Answers, engine.Cut, func(n int) bool { return n%6 == 0 && n <= 48 })
		return nil
	}
	open := func(t testing.TB) []linearizable.Store { return e.fleet(t, server.Via(proxy.Addr())) }
	linearizable.Check(t, setting, open)
	if proxy.Lost() == 0 {
		t.Error("nothing was lost")
	}
	setting.Rounds = 200 // as many as it takes
	t.Run("made again", func(t *testing.T) {
		linearizable.MustFail(t, setting, func(t testing.TB) (all []linearizable.Store) {
			for _, st := range open(t) {
				all = append(all, insistent{st})
			}
			return all
		})
	})
}

// insistent is a store that tries again blindly.
type insistent struct{ linearizable.Store }

func (i insistent) Apply(ctx context.Context, c webhookcfg.Change) (err error) {
	for range 5 {
		if err = i.Store.Apply(ctx, c); !errors.Is(err, sqlstore.ErrOutcomeUnknown) {
			return err
		}
	}
	return err
}
