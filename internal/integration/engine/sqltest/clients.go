package sqltest

import (
	"database/sql"
	"slices"
	"testing"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Clients checks that a walk lists each client with a webhook exactly once, and nobody else.
func Clients(t *testing.T, db *sql.DB, prefix string, st *sqlstore.Store) {
	var want []string
	for n, client := range []string{"a", "a ", "a\x00", "a/b", "ä", "\xff", "A", "zeta", "'", "%", "B", "b"} {
		change := webhookcfg.SetChange(client, webhookcfg.All(), egress.NewURL("https://h.example.com/"))
		if n%2 == 1 {
			change.Scope = webhookcfg.Entity("e1")
		}
		if err := st.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
		if n%4 > 1 {
			want = append(want, client)
			continue
		}
		if err := st.Apply(t.Context(), webhookcfg.UnsetChange(client, webhookcfg.All())); err != nil {
			t.Fatal(err)
		}
	}
	slices.Sort(want)
	for limit := 1; limit < 20; limit++ {
		var got []string
		for cursor, first := "", true; first || cursor != ""; first = false {
			page, err := st.ListClients(t.Context(), cursor, limit)
			if err != nil || len(page.Clients) > limit {
				t.Fatalf("%d clients, limit %d: %v", len(page.Clients), limit, err)
			}
			got, cursor = append(got, page.Clients...), page.Next
		}
		if !slices.Equal(got, want) {
			t.Errorf("limit %d: %q, want %q", limit, got, want)
		}
	}
	if _, err := db.ExecContext(t.Context(), "DELETE FROM "+prefix+"client"); err != nil {
		t.Fatal(err)
	}
	if page, err := st.ListClients(t.Context(), "", 10); err != nil || len(page.Clients) > 0 || page.Next != "" {
		t.Errorf("of no clients: %q, %v", page, err)
	}
}
