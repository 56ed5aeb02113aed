package service_test

import (
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestOutbox: in PostgreSQL too, a module doesn't change without its notification.
func TestOutbox(t *testing.T) {
	t.Parallel()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	store := newDatabase(t)
	p := start(t, path, store)
	conn, err := pgx.Connect(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	rename := func(from, to string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), "ALTER TABLE "+from+" RENAME TO "+to); err != nil {
			t.Fatal(err)
		}
	}
	rename("wh_outbox_message", "lost")
	if version, err := p.change("e1"); err == nil {
		t.Errorf("without the queue, version %d is acknowledged", version)
	}
	rename("lost", "wh_outbox_message")
	if version, err := p.change("e1"); err != nil || version != 1 {
		t.Errorf("with the queue again: version %d, %v; want 1", version, err)
	}
}
