package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Healthy returns nil if the store can work: the database responds, it isn't a standby, it has
// all tables, their schema is right, and it executes a statement that writes. Otherwise the
// error says what to do, for instance to call [Store.Migrate]. Use it for an alert, since reads
// succeed on a read-only database.
//
// The statement changes no row, so Healthy doesn't notice a full disk.
//
// You can call Healthy as often as you like. It asks the database at most once a second, on
// one connection, for at most five seconds. Calls in between get the same result.
func (s *Store) Healthy(ctx context.Context) error {
	return s.wrapError("health", s.health.Do(ctx, s.examine), egress.URL{})
}

func (s *Store) examine(ctx context.Context) error {
	works := s.isReady.Load()
	err := s.check(ctx, oldestVersion)
	if works && errors.Is(err, ErrNewerSchema) {
		err = nil // the newer tables stay usable for this process until it ends
	}
	if err != nil {
		return err
	}
	if _, err := s.execute(ctx, s.queries.lock, values{"client": []byte{}}); err != nil {
		return fmt.Errorf("changes fail: %w", err)
	}
	return nil
}
