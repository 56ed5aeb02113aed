package sqlstore_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// calls are the calls that need a current schema.
func calls(s *sqlstore.Store) map[string]func(context.Context) error {
	all := map[string]func(context.Context) error{
		"set":      func(ctx context.Context) error { return s.Apply(ctx, set()) },
		"unset":    func(ctx context.Context) error { return s.Apply(ctx, unset()) },
		"set all":  func(ctx context.Context) error { return s.Apply(ctx, setAll()) },
		"resolve":  func(ctx context.Context) error { return second(s.Resolve(ctx, "acme", "e1")) },
		"list":     func(ctx context.Context) error { return second(s.List(ctx, "acme", "", 1)) },
		"versions": func(ctx context.Context) error { return second(s.Versions(ctx, []string{"acme"})) },
		"clients":  func(ctx context.Context) error { return second(s.ListClients(ctx, "", 1)) },
		"erase":    func(ctx context.Context) error { return s.Erase(ctx, "acme") },
		"sweep":    func(ctx context.Context) error { return second(s.Sweep(ctx, 1)) },
		"changes":  func(ctx context.Context) error { return second(s.Changes(ctx, "")) },
		"load":     func(ctx context.Context) error { return second(s.LoadDelivery(ctx, "acme", webhookcfg.All())) },
		"save": func(ctx context.Context) error {
			return s.SaveDelivery(ctx, "acme", webhookcfg.All(), deliver.Record{})
		},
	}
	return all
}

// TestUnready: until the schema fits, every call checks it again and sends nothing else, except
// to find out which tables are missing. Once it fits, calls succeed without a check.
func TestUnready(t *testing.T) {
	for _, dialect := range dialects() {
		for name, db := range map[string]*schema{
			"no table": {version: noTable}, "half-migrated": {version: noRow}, "version 0": {version: 0},
			"newer": {version: current + 1}, "standby": {version: current, standby: true}, "unfit": {version: current, unfit: true},
			"version 2":          {version: 2},
			"of another dialect": {version: current, err: stateError("42703")},
		} {
			repairedDB := &schema{version: current}
			var repaired atomic.Bool
			s, f := openUnchecked(t, dialect, nil, func(call string, args []driver.NamedValue) (resultRows, error) {
				if repaired.Load() {
					return repairedDB.on(call, args)
				}
				return db.on(call, args)
			})
			all := calls(s)
			if dialect == sqlstore.MySQL() {
				delete(all, "changes")
			}
			for call, do := range all {
				err := do(t.Context())
				if err == nil || outcomeOf(err) != notMade || errors.Is(err, sqlstore.ErrNewerSchema) != (name == "newer") ||
					errors.Is(err, sqlstore.ErrStandby) != db.standby {
					t.Errorf("%s, %s: %s: %v", dialect, name, call, err)
				}
				if db.version < 1 && !strings.Contains(err.Error(), "Migrate") {
					t.Errorf("%s, %s: %s: the error doesn't name Migrate: %v", dialect, name, call, err)
				}
			}
			if sent := f.count("") - f.count("connect") - f.count("SELECT COUNT(*) FROM") - f.count("SELECT version FROM"); sent != len(all) || f.count("SELECT version,") != len(all) {
				t.Errorf("%s, %s: %d calls sent %s", dialect, name, len(all), f.shape())
			}
			repaired.Store(true)
			for range 2 {
				for call, do := range all {
					if err := do(t.Context()); err != nil {
						t.Errorf("%s, %s, repaired: %s: %v", dialect, name, call, err)
					}
				}
			}
			if n := f.count("SELECT version,"); n != len(all)+1 {
				t.Errorf("%s, %s: %d checks for %d refused calls", dialect, name, n, len(all))
			}
		}
	}
}

// TestHungCheck: a check that hangs only delays its own caller.
func TestHungCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hang atomic.Bool
		thawed := make(chan struct{})
		hang.Store(true)
		s, f := openUnchecked(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if strings.HasPrefix(call, "SELECT version,") && hang.CompareAndSwap(true, false) {
				<-thawed
				return nil, context.DeadlineExceeded
			}
			return (&schema{version: current}).on(call, args)
		})
		hung := make(chan error, 1)
		go func() { hung <- s.Apply(context.Background(), set()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for name, call := range calls(s) {
			if err := call(ctx); err != nil {
				t.Errorf("%s, while a check hangs: %v", name, err)
			}
		}
		if n := f.count("SELECT version,"); n != 2 {
			t.Errorf("%d checks", n)
		}
		close(thawed)
		if err := <-hung; !errors.Is(err, context.DeadlineExceeded) || outcomeOf(err) != notMade {
			t.Errorf("the call whose check hung: %v", err)
		}
	})
}
