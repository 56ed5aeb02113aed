package admin_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// The name of a client that occurs nowhere else, and a token that only this client's URLs
// have.
const erased, token = "erased-9f3c27", "t0ken-51d0aa"

// erase checks that without Erase, the next client with a deleted client's name inherits its
// webhooks. With Erase it inherits nothing, not even through readers that were away. In the
// end, nothing in the engine's data contains the client's name or token.
func erase(t *testing.T, p place) {
	url := egress.NewURL("https://hooks.example.com/" + token)
	p.use(t, func(st webhookcfg.Store) {
		hooktest.Apply(t, st,
			hooktest.At(1, webhookcfg.SetChange(erased, webhookcfg.Entity("e1"), url)),
			hooktest.At(2, webhookcfg.SetChange(erased, webhookcfg.All(), url)), // which drops the override
			hooktest.At(3, webhookcfg.SetChange(erased, webhookcfg.Entity("e2"), url)),
			hooktest.Unset(erased, "off", 4),
			hooktest.SetAll("kept", 5), hooktest.Set("kept", "e1", 6))
		copied, err := cache.New(st, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer copied.Close()
		inherited := func(st webhookcfg.Store) (all string) {
			t.Helper()
			for _, entity := range []string{"e1", "e2", "off", "other"} {
				hook, err := st.Resolve(t.Context(), erased, entity)
				if err != nil {
					t.Fatal(err)
				}
				all += hook.URL.Reveal()
			}
			return all
		}
		away := newReader(t, st)
		if want := strings.Repeat(url.Reveal(), 3); inherited(st) != want || inherited(copied.Store()) != want {
			t.Error("without Erase, the next client inherits nothing")
		}
		if err := admin.Erase(t.Context(), st, erased); err != nil {
			t.Fatal(err)
		}
		hooktest.Apply(t, st, hooktest.Set(erased, "new", 7)) // by the next client
		if got := inherited(st); got != "" {
			t.Errorf("the next client inherits %q", got)
		}
		away.expectChange(t)
		for inherited(copied.Store()) != "" { // until the copy has heard of it
			time.Sleep(10 * time.Millisecond)
		}
		if err := admin.Erase(t.Context(), st, erased); err != nil {
			t.Fatal(err)
		}
	})
	all := keeps(t, p)
	if strings.Contains(all, token) {
		t.Error("the token of an erased URL is left")
	}
	if name := drivers[p.engine].name; name != "" {
		forget(t, p)
		all = keeps(t, p)
	}
	if strings.Contains(all, erased) {
		t.Error("the name of an erased client is left")
	}
	if !strings.Contains(all, "kept") || !strings.Contains(all, "hooks.example.com") {
		t.Error("the search doesn't find what is there")
	}
}

// forget makes an hour pass. After that, a sweep deletes the rows of clients with nothing
// set.
func forget(t *testing.T, p place) {
	db, st, err := p.openSQL()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "UPDATE "+p.prefix+"client SET vacated = 1 WHERE vacated > 1"); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Sweep(t.Context(), 1000); err != nil {
		t.Fatal(err)
	}
}

// keeps returns everything that an engine keeps of the store: the file, all rows of the
// tables, or all keys and values.
func keeps(t *testing.T, p place) string {
	var all strings.Builder
	switch p.engine {
	case "file":
		file, err := os.ReadFile(p.address)
		if err != nil {
			t.Fatal(err)
		}
		return string(file)
	case "etcd":
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{p.address}})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		keys, err := client.Get(t.Context(), p.prefix, clientv3.WithPrefix())
		if err != nil {
			t.Fatal(err)
		}
		for _, kv := range keys.Kvs {
			fmt.Fprintf(&all, "%s %s\n", kv.Key, kv.Value)
		}
		return all.String()
	}
	db, _, err := p.openSQL()
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"schema", "client", "override", "delivery"} {
		rows, err := db.QueryContext(t.Context(), "SELECT * FROM "+p.prefix+table)
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		row := make([]any, len(columns))
		for n := range row {
			row[n] = new(any)
		}
		for rows.Next() {
			if err := rows.Scan(row...); err != nil {
				t.Fatal(err)
			}
			for _, value := range row {
				fmt.Fprintf(&all, "%s ", *value.(*any))
			}
		}
		if err := errors.Join(rows.Err(), rows.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return all.String()
}

// reader has read the erased client, and then was away. It has a cursor of the feed or a
// version of the client, depending on the store.
type reader struct {
	feed      cache.Feed
	versioner cache.Versioner
	cursor    string
	versions  []string
}

func newReader(t *testing.T, st webhookcfg.Store) *reader {
	r := new(reader)
	r.feed, _ = st.(cache.Feed)
	r.versioner, _ = st.(cache.Versioner)
	r.read(t)
	return r
}

// read reads the feed and the versions once. It returns what the feed reports, and the
// versions from the previous read.
func (r *reader) read(t *testing.T) (changes cache.Changes, versions []string) {
	t.Helper()
	if r.feed != nil {
		var err error
		changes, err = r.feed.Changes(patience(t), r.cursor)
		if errors.Is(err, errors.ErrUnsupported) {
			r.feed = nil
		} else if err != nil {
			t.Fatal(err)
		}
		r.cursor = changes.Next
	}
	if r.versioner != nil {
		var err error
		versions, err = r.versioner.Versions(t.Context(), []string{erased})
		if errors.Is(err, errors.ErrUnsupported) {
			r.versioner = nil
		} else if err != nil {
			t.Fatal(err)
		}
	}
	known := r.versions
	r.versions = versions
	return changes, known
}

// expectChange checks that the reader learns of the erasure now.
func (r *reader) expectChange(t *testing.T) {
	t.Helper()
	changes, known := r.read(t)
	if r.feed != nil && !changes.Reset && !slices.Contains(changes.Clients, erased) {
		t.Errorf("the feed doesn't report the erased client, but %q", changes.Clients)
	}
	if r.versioner != nil && slices.Equal(known, r.versions) {
		t.Errorf("the erased client has the version %q again", known)
	}
	if r.feed == nil && r.versioner == nil {
		t.Error("the store has neither a feed nor versions")
	}
}
