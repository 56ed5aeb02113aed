package outbox

import (
	"database/sql"
	"errors"
	"fmt"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// TestStatementsAreFixed: however many clients and entities ask, the lists have a few texts.
func TestStatementsAreFixed(t *testing.T) {
	t.Parallel()
	states, _ := sent.Words()
	tables := &tables{engine: engines[0], prefix: "wh_"}
	for n := range 100 {
		for _, entity := range []string{"", fmt.Sprint("e", n)} {
			for _, state := range append(states, "") {
				for _, r := range viewRanges(sent.Query{Entity: entity, State: state, After: fmt.Sprint(n), Limit: n}) {
					if s := tables.fixed(viewColumns + r.from); s.Text != tables.fixed(viewColumns+r.from).Text {
						t.Fatal("compiled twice, differently")
					}
				}
			}
		}
	}
	n := 0
	tables.statements.Range(func(any, any) bool { n++; return true })
	if n == 0 || n > 20 {
		t.Errorf("%d statements", n)
	}
}

// TestNotificationsBadQuery: what isn't a query never reaches the database.
func TestNotificationsBadQuery(t *testing.T) {
	t.Parallel()
	box, err := New(new(sql.DB), sqlstore.SQLite(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	past := place{Range: 1, ID: "m"}.String()
	for _, q := range []sent.Query{
		{},
		{Limit: -1},
		{Limit: 1001},
		{Limit: 1, State: "given up"},
		{Limit: 1, After: "x"},
		{Limit: 1, After: past},
		{Limit: 1, After: place{}.String()},
	} {
		if _, err := box.Notifications(t.Context(), "a", q); !errors.Is(err, webhookcfg.ErrInvalidArgument) {
			t.Errorf("%+v: %v", q, err)
		}
	}
}
