package sqlstore_test

import (
	"database/sql/driver"
	"strings"
	"testing"
	"testing/synctest"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// TestReadRetries: a retry discards the rows of the failed attempt.
func TestReadRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fails := failing("SELECT 0", stateError("40001"), 2)
		s, _ := openFake(t, sqlstore.PostgreSQL(), nil, func(call string, args []driver.NamedValue) (resultRows, error) {
			if _, err := fails(call, args); err != nil || !strings.HasPrefix(call, "SELECT 0") {
				return nil, err
			}
			return resultRows{
				{int64(0), []byte("acme"), []byte("https://a.example/"), int64(1)},
				{int64(1), []byte("e1"), []byte(""), int64(2)},
				{int64(1), []byte("e2"), []byte("https://b.example/"), int64(3)},
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
