package sqlstore

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Check returns a warning for each setting of the database, its connections or their pool that
// could lose acknowledged changes, make calls fail under load, or keep erased data. Each warning
// says what to change. Call Check after [Store.Migrate], and log the warnings:
//
//   - The pool has no limit, or a higher one than the server accepts.
//   - PostgreSQL: commits don't wait for the disk or for the synchronous standby.
//     Transactions are read-only. Idle transactions never end.
//   - MySQL and MariaDB: commits don't wait for the disk or the binary log. A change can wait
//     for a row for a long time.
//   - SQLite: commits don't wait for the disk. WAL is off, or busy_timeout isn't set. Erased
//     webhooks stay readable in the file.
//
// Check only sees the settings of the connections that it gets. It returns an error if the
// tables aren't usable, which names those that are missing, or if a query fails.
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	warnings, err = s.advise(ctx)
	return warnings, s.wrapError("check", err, egress.URL{})
}

func (s *Store) advise(ctx context.Context) (warnings []string, err error) {
	if err := s.check(ctx, oldestVersion); err != nil {
		return warnings, err
	}
	return s.dialect.Advise(ctx, s.db)
}
