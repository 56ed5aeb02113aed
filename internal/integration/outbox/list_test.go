package outbox_test

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
)

// listed returns the rows of a list in their order.
func listed(rows []shownRow, q outbox.Query) (ids []string) {
	var found []shownRow
	for _, r := range rows {
		if stateWords[r.state] == map[outbox.State]string{outbox.Waiting: "waiting", outbox.Delivered: "delivered", outbox.GivenUp: "given_up", outbox.Dropped: "dropped"}[q.State] &&
			(q.Client == "" || r.client == q.Client) {
			found = append(found, r)
		}
	}
	slices.SortFunc(found, func(a, b shownRow) int {
		return cmp.Or(cmp.Compare(a.client, b.client), cmp.Compare(a.group, b.group), cmp.Compare(a.due, b.due), cmp.Compare(a.seq, b.seq))
	})
	for _, r := range found {
		ids = append(ids, r.id())
	}
	return ids
}

// TestList: the pages of a list have each notification once, client by client.
func TestList(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			f := newFixture(t, e, nil, nil)
			rows := randomRows(200)
			f.fillRows(rows)
			for _, client := range []string{"", "a", "ab", "b"} {
				for _, state := range []outbox.State{outbox.Waiting, outbox.Delivered, outbox.GivenUp, outbox.Dropped} {
					for _, limit := range []int{1, 7, 0, 1000} {
						q := outbox.Query{State: state, Client: client, Limit: limit}
						var got []string
						for pages := 0; ; pages++ {
							page, err := f.box.List(t.Context(), q)
							if err != nil || pages > len(rows) || len(page.Entries) > cmp.Or(limit, 100) {
								t.Fatalf("%+v: %d on page %d, %v", q, len(page.Entries), pages, err)
							}
							for _, entry := range page.Entries {
								got = append(got, entry.ID)
								checkListed(t, rows, state, entry)
							}
							if q.After = page.Next; q.After == "" {
								break
							}
						}
						if diff := gocmp.Diff(listed(rows, q), got); diff != "" {
							t.Fatalf("%+v: -want +got:\n%s", q, diff)
						}
					}
				}
			}
			testBadList(t, f)
		})
	}
}

// checkListed compares an entry with its row.
func checkListed(t *testing.T, rows []shownRow, state outbox.State, got outbox.Entry) {
	t.Helper()
	var seq int
	if _, err := fmt.Sscanf(got.ID, "m%d", &seq); err != nil {
		t.Fatal(err)
	}
	r := rows[seq]
	if got.Client != r.client || got.Entity != r.entity || got.State != state || got.Attempts != r.attempts || string(got.Reason) != r.reason ||
		got.Enqueued.UnixMicro() != r.enqueued || got.Due.UnixMicro() != max(r.due, r.enqueued) {
		t.Errorf("%+v of the row %+v", got, r)
	}
}

// testBadList: what isn't a query is refused. So is a place in another list.
func testBadList(t *testing.T, f *fixture) {
	t.Helper()
	page, err := f.box.List(t.Context(), outbox.Query{State: outbox.Waiting, Client: "a", Limit: 1})
	if err != nil || page.Next == "" {
		t.Fatalf("%+v, %v", page, err)
	}
	at := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	for what, q := range map[string]outbox.Query{
		"no state":          {},
		"unknown state":     {State: outbox.Dropped + 1},
		"negative limit":    {State: outbox.Waiting, Limit: -1},
		"limit":             {State: outbox.Waiting, Limit: 1001},
		"no place":          {State: outbox.Waiting, After: "x"},
		"not JSON":          {State: outbox.Waiting, After: at("x")},
		"a list":            {State: outbox.Waiting, After: at(`[]`)},
		"a word":            {State: outbox.Waiting, After: at(`{"g":"x"}`)},
		"of another client": {State: outbox.Waiting, Client: "ab", After: page.Next},
	} {
		if page, err := f.box.List(t.Context(), q); err == nil {
			t.Errorf("%s: %d entries", what, len(page.Entries))
		}
	}
}
