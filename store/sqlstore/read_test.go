package sqlstore_test

import (
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestReadRetries: a retry discards the rows of the failed attempt.
func TestReadRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := failing("SELECT pg_is_in_recovery(), 0", stateError("40001"), 2)
		s, _ := openFake(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if _, err := fails(call, args); err != nil || !strings.HasPrefix(call, "SELECT pg_is_in_recovery(), 0") {
				return nil, err
			}
			return resultRows{
				{false, int64(0), []byte("acme"), []byte("https://a.example/"), int64(1)},
				{false, int64(1), []byte("e1"), []byte(""), int64(2)},
				{false, int64(1), []byte("e2"), []byte("https://b.example/"), int64(3)},
			}, nil
		})
		page, err := s.List(t.Context(), "acme", "", 1)
		if err != nil {
			t.Fatal(err)
		}
		if page.Base.Source != webhookcfg.SourceBase || len(page.Overrides) != 1 || page.Next != "e1" {
			t.Errorf("got %v", page)
		}
	})
}

// TestDemoted: every read checks whether the server is a standby by now.
func TestDemoted(t *testing.T) {
	for _, dialect := range dialects() {
		s, _ := openFake(t, dialect, nil, func(call string, _ []driver.NamedValue) (resultRows, error) {
			switch {
			case strings.Contains(call, "AS identity, NULL, NULL"):
				return resultRows{{true, "db", nil, nil}}, nil
			case strings.Contains(call, "AS identity"):
				return resultRows{{true, "db", "5:5:", int64(5), nil}}, nil
			case strings.Contains(call, "FROM (SELECT 1) p LEFT JOIN wh_delivery"):
				return resultRows{{true, nil, nil, nil, nil, nil, nil}}, nil
			}
			return resultRows{{true, int64(0), nil, nil, nil}}, nil
		})
		for name, call := range calls(s) {
			reads := name == "resolve" || name == "list" || name == "versions" || name == "load" || name == "changes" && dialect != sqlstore.MySQL()
			if err := call(t.Context()); reads && !errors.Is(err, sqlstore.ErrStandby) {
				t.Errorf("%s: %s: %v", dialect, name, err)
			}
		}
	}
}
