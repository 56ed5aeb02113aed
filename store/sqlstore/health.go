package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Healthy returns nil if the database can serve the store: it responds, its schema is one that
// the store works with, it is no standby, and it executes a statement that writes. That
// statement changes no row, so a full disk isn't noticed before a change fails. With
// [Options.StandbyLag], nothing has to be written, and a standby may lag by as much. The
// error says what to do, for instance to call Migrate.
//
// You may call Healthy as often as you like. The database is asked at most once a second, by one
// connection, for at most five seconds; calls in between get the same result.
func (s *Store) Healthy(ctx context.Context) error {
	return s.wrapError("health", s.health.Do(ctx, s.examine), egress.URL{})
}

func (s *Store) examine(ctx context.Context) error {
	works := s.isReady.Load()
	err := s.check(ctx, oldestVersion)
	if works && errors.Is(err, ErrNewerSchema) {
		err = nil // a later version migrates only to what this process can use until it ends
	}
	if err != nil || s.readsOnly {
		return err
	}
	if _, err := s.execute(ctx, s.queries.lock, values{"client": []byte{}}); err != nil {
		return fmt.Errorf("changes fail: %w", err)
	}
	return nil
}
