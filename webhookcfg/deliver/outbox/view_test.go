package outbox

import (
	"database/sql"
	"errors"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// TestNotificationsBadQuery: what isn't a query never reaches the database.
func TestNotificationsBadQuery(t *testing.T) {
	t.Parallel()
	box, err := New(new(sql.DB), sqlstore.SQLite(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []sent.Query{
		{},
		{Limit: -1},
		{Limit: 1001},
		{Limit: 1, State: "given up"},
		{Limit: 1, After: "x"},
		{Limit: 1, After: place{}.String()},
	} {
		if _, err := box.Notifications(t.Context(), "a", q); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
