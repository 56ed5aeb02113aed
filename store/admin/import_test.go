package admin_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/admin"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// oldRows returns the rows of 100 clients in no order. One of them has more than fit on a page.
func oldRows() (rows []row) {
	changed := time.Date(2026, 1, 2, 3, 4, 5, 678_900, time.FixedZone("", 3600)) // not whole microseconds
	for c := range 100 {
		overrides := 3
		if c == 7 {
			overrides = 2500
		}
		client := fmt.Sprint("c", c)
		for e := range overrides {
			rows = append(rows, row{client, fmt.Sprint("e", overrides-e), "https://hooks.example.com/in", changed})
		}
		if c%2 == 0 {
			rows = append(rows, row{client, "", "https://hooks.example.com/all", changed})
		}
	}
	return rows
}

// TestImport: all rows arrive in a file store. What clients change afterwards survives every
// other run.
func TestImport(t *testing.T) {
	dst, err := store.OpenFile(filepath.Join(t.TempDir(), "webhooks.jsonl"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer dst.Close()
	rows := oldRows()
	if invalid, err := bringIn(t.Context(), dst, rows, nil, false); err != nil || len(invalid) > 0 {
		t.Fatalf("%q, %v", invalid, err)
	}
	count := 0
	for client, err := range admin.Clients(t.Context(), dst) {
		for range admin.Webhooks(t.Context(), dst, client) {
			count++
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if count != len(rows) {
		t.Errorf("%d webhooks from %d rows", count, len(rows))
	}
	hooktest.Apply(t, dst, hooktest.Set("c1", "e1", 1))
	want, err := dst.Resolve(t.Context(), "c1", "e1")
	if err != nil {
		t.Fatal(err)
	}
	for _, skip := range []bool{false, true} {
		if _, err := bringIn(t.Context(), dst, rows, nil, skip); !errors.Is(err, admin.ErrNotEmpty) {
			t.Errorf("a second run: %v", err)
		}
	}
	if got, err := dst.Resolve(t.Context(), "c1", "e1"); err != nil || !got.URL.Equal(want.URL) || !got.Since.Equal(want.Since) {
		t.Errorf("the client's change became %v, %v", got, err)
	}
}

// TestImportOfInvalidRows: each of them is named. Without skip, nothing is copied.
func TestImportOfInvalidRows(t *testing.T) {
	secret := "https://user:t0ken@hooks.example.com/"
	bad := []row{
		{client: "acme", entity: "e1", url: "http://hooks.example.com/t0ken"},
		{client: "acme", entity: "e2", url: "https://10.0.0.1/t0ken"},
		{client: "acme", entity: "e3", url: secret},
		{client: "acme", entity: "e/4", url: "https://hooks.example.com/t0ken"},
		{client: "acme", entity: "e 5", url: "https://hooks.example.com/t0ken"},
		{client: "acme", entity: "e6", url: ""},
		{client: "", entity: "e7", url: "https://hooks.example.com/t0ken"},
		{client: "c2", entity: "e1", url: "https://hooks.example.com/second"},
		{client: "c2", entity: "", url: "https://hooks.example.com/second"},
	}
	rows := append(oldRows(), bad...)
	dst := store.NewMemory()
	invalid, err := bringIn(t.Context(), dst, rows, nil, false)
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%d of %d rows", len(bad), len(rows))) || len(invalid) != len(bad) {
		t.Fatalf("%q, %v", invalid, err)
	}
	for n, r := range bad {
		if want := fmt.Sprintf("client %q, entity %q: ", r.client, r.entity); !strings.HasPrefix(invalid[n], want) || strings.Contains(invalid[n], "t0ken") {
			t.Errorf("%q, want it to start with %q", invalid[n], want)
		}
	}
	for client := range admin.Clients(t.Context(), dst) {
		t.Errorf("copied %q", client)
	}
	if skipped, err := bringIn(t.Context(), dst, rows, nil, true); err != nil || len(skipped) != len(bad) {
		t.Errorf("skipping them: %q, %v", skipped, err)
	}
	for violation, err := range admin.AuditAll(t.Context(), dst, new(egress.Policy)) {
		t.Errorf("%+v, %v", violation, err)
	}
	hook, err := dst.Resolve(t.Context(), "c2", "e1")
	if err != nil || hook.URL.Reveal() != "https://hooks.example.com/in" {
		t.Errorf("the first row of c2 became %v, %v", hook, err)
	}
}

// TestImportNoticesALoss: a store that loses a change is no success.
func TestImportNoticesALoss(t *testing.T) {
	if _, err := bringIn(t.Context(), losing{store.NewMemory()}, oldRows(), nil, false); err == nil || !strings.Contains(err.Error(), "differ") {
		t.Errorf("got %v", err)
	}
}

// losing loses the changes of an entity.
type losing struct{ *store.Memory }

func (f losing) Apply(ctx context.Context, c webhookcfg.Change) error {
	if c.Scope == webhookcfg.Entity("e2") {
		return nil
	}
	return f.Memory.Apply(ctx, c)
}
