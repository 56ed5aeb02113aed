package sqltest

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// View checks that the view shows all webhooks, and never the path or query of a URL.
func View(t *testing.T, db *sql.DB, prefix string, st *sqlstore.Store) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	apply := func(c webhookcfg.Change) {
		t.Helper()
		c.Time = at
		if err := st.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	set := func(client string, scope webhookcfg.Scope, url string) {
		t.Helper()
		apply(webhookcfg.SetChange(client, scope, egress.NewURL(url)))
	}
	set("acme", webhookcfg.Entity("dropped"), "https://dropped.example.com/")
	set("acme", webhookcfg.All(), "https://hooks.example.com:8443/t0ken?key=t0ken")
	set("acme", webhookcfg.Entity("e1"), "http://[2001:db8::1]?t0ken")
	set("acme", webhookcfg.Entity("e2"), "https://h.example.com#t0ken")
	set("acme", webhookcfg.Entity("e3"), "https://user:t0ken@h.example.com/")
	set("acme", webhookcfg.Entity("e4"), `https://h.example.com\t0ken`)
	set("acme", webhookcfg.Entity("e5"), "t0ken://h.example.com/")
	set("acme", webhookcfg.Entity("e6"), "https:t0ken://h.example.com/")
	set("acme", webhookcfg.Entity("e7"), "https://h.example.com/t0k\xff\x00en@t0ken")
	set("acme", webhookcfg.Entity("e8"), "HTTPS://Hooks.EXAMPLE.com/T0ken")
	set("acme", webhookcfg.Entity("e9"), "Http://h.example.com:8080/T0ken")
	apply(webhookcfg.UnsetChange("acme", webhookcfg.Entity("off")))
	set("gone", webhookcfg.All(), "https://gone.example.com/")
	apply(webhookcfg.UnsetChange("gone", webhookcfg.All()))
	set("\xff", webhookcfg.All(), "https://other.example.com/")

	rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+prefix+"webhook ORDER BY client, COALESCE(entity, '')")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var got []string
	for rows.Next() {
		var client, entity, source, origin, since sql.NullString
		if err := rows.Scan(&client, &entity, &source, &origin, &since); err != nil {
			t.Fatal(err)
		}
		if time := strings.Replace(since.String, "T", " ", 1); !strings.HasPrefix(time, "2026-01-02 03:04:05.678") {
			t.Errorf("since %s", since.String)
		}
		if client.String != "acme" { // not text
			client.String = "other"
		}
		got = append(got, fmt.Sprint(client.String, " ", entity.String, " ", source.String, " ", origin.String))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"acme  base https://hooks.example.com:8443",
		"acme e1 override http://[2001:db8::1]",
		"acme e2 override https://h.example.com",
		"acme e3 override ",
		"acme e4 override https://h.example.com",
		"acme e5 override ",
		"acme e6 override ",
		"acme e7 override https://h.example.com",
		"acme e8 override https://hooks.example.com",
		"acme e9 override http://h.example.com:8080",
		"acme off off ",
		"other  base https://other.example.com",
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
