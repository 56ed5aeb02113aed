package sqlstore_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
)

// TestHealthy: a store is healthy if its schema fits, and its server isn't a standby and
// accepts a statement that writes. It notices within a second if that changes, with one
// statement each while it works.
func TestHealthy(t *testing.T) {
	readOnly := stateError("25006")
	for _, tt := range []struct {
		name, want string
		db         schema
		write      error
		is         error
	}{
		{"healthy", "", schema{version: current}, nil, nil},
		{"no table", "sqlstore: health: tables are missing: wh_schema, wh_client, wh_override, wh_delivery: call Migrate", schema{version: noTable}, nil, nil},
		{"lost table", "a table was lost: wh_override: restore it", schema{version: current, lost: "wh_override"}, nil, nil},
		{"unreachable", "sqlstore: health: no such host", schema{version: current, err: errors.New("no such host")}, nil, nil},
		{"half-migrated", "call Migrate", schema{version: noRow}, nil, nil},
		{"newer", "version 4", schema{version: current + 1}, nil, sqlstore.ErrNewerSchema},
		{"standby", "standby", schema{version: current, standby: true}, nil, sqlstore.ErrStandby},
		{"read-only", "changes fail", schema{version: current}, readOnly, readOnly},
	} {
		synctest.Test(t, func(t *testing.T) {
			db, write := &tt.db, tt.write
			s, f := openUnchecked(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
				if strings.HasPrefix(call, "UPDATE wh_client") {
					return nil, write
				}
				return db.on(call, args)
			})
			check := func(when, want string, is error) {
				t.Helper()
				for range 3 {
					err := s.Healthy(t.Context())
					if (err == nil) != (want == "") || is != nil && !errors.Is(err, is) || err != nil && !strings.Contains(err.Error(), want) {
						t.Errorf("%s, %s: %v", tt.name, when, err)
					}
				}
			}
			check("at first", tt.want, tt.is)
			if n := f.count("SELECT version,") + f.count("UPDATE"); n > 2 {
				t.Errorf("%s: %d statements in a second: %s", tt.name, n, f.shape())
			}
			db, write = &schema{version: current}, nil
			time.Sleep(time.Second)
			check("repaired", "", nil)
			db, write = &tt.db, tt.write
			time.Sleep(time.Second)
			if tt.name == "newer" {
				tt.want, tt.is = "", nil // a process that works keeps working
			}
			check("again", tt.want, tt.is)
			_ = f.db.Close()
		})
	}
}

func TestHealthyWithAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, _ := openUnchecked(t, sqlstore.SQLite(), nil, (&schema{version: current}).on)
	if err := s.Healthy(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
