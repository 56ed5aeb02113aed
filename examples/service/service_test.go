package main

import (
	"fmt"
	"path/filepath"
	"testing"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestWarm: after a start, the copy answers for an entity that nobody has asked for.
func TestWarm(t *testing.T) {
	s := idle(t, []string{"-store", "sqlite:" + filepath.Join(t.TempDir(), "service.db")})
	if err := s.readAhead(t.Context()); err == nil {
		t.Error("read a database without tables")
	}
	if err := s.database.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		change := webhookcfg.SetChange(fmt.Sprint("client-", i), webhookcfg.All(), egress.NewURL("https://example.com/"))
		if err := s.database.webhooks.Apply(t.Context(), change); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.readAhead(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if _, err := s.webhooks.Resolve(t.Context(), fmt.Sprint("client-", i), "never seen"); err != nil {
			t.Error(err)
		}
	}
	if stats := s.webhooks.Stats(); stats.Hits != 3 || stats.Misses != 0 {
		t.Errorf("%d hits, %d misses", stats.Hits, stats.Misses)
	}
}
