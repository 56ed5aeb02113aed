package sqlstore

import (
	"context"
	"slices"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// advice is a warning about a setting. when is the SQL condition for it.
type advice struct{ when, text string }

// Check returns a warning for each setting of the database, its connections or their pool
// that could lose acknowledged changes, make calls fail under load, or keep erased data. Each warning says what
// to change. Call Check after Migrate, and log the warnings:
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
// tables aren't usable or a query fails.
func (s *Store) Check(ctx context.Context) (warnings []string, err error) {
	warnings, err = s.advise(ctx)
	return warnings, s.wrapError("check", err, egress.URL{})
}

func (s *Store) advise(ctx context.Context) (warnings []string, err error) {
	if err := s.check(ctx, oldestVersion); err != nil {
		return warnings, err
	}
	limit := s.db.Stats().MaxOpenConnections
	if limit == 0 {
		warnings = append(warnings, "the pool has no limit, so a busy moment can exhaust the server's connections: call SetMaxOpenConns and SetMaxIdleConns")
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return warnings, err
	}
	defer conn.Close()
	for _, a := range s.dialect.advices {
		q := s.dialect.Compile("SELECT CASE WHEN "+a.when+" THEN 1 ELSE 0 END", s.queries.prefix)
		found, err := query(ctx, conn, q, values{"pool": limit}, scanOne[bool])
		if err != nil {
			return warnings, err
		}
		if slices.Contains(found, true) {
			warnings = append(warnings, a.text)
		}
	}
	return warnings, nil
}
