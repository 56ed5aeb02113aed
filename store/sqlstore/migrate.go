package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// schemaVersion is the version of the tables that this package reads and writes.
const schemaVersion = 1

// Migrate makes the tables of the store, or brings them up to date; where they
// are, it reads one row and returns. It can be called by any number of processes
// at once, as replicas do that start together: a lock of the database lets one
// after the other work. A Migrate that was cut short can be called again.
func (s *Store) Migrate(ctx context.Context) error {
	if done, err := s.isMigrated(ctx, s.db); done || errors.Is(err, ErrNewerSchema) {
		return err
	}
	err := s.retry(ctx, func() (outcome, error) {
		err := s.migrateLocked(ctx)
		if err == nil {
			return outcomeFailed, nil
		}
		return s.classifyUncommitted(err), err
	})
	return wrapError("migrate", err, egress.URL{})
}

func (s *Store) migrateLocked(ctx context.Context) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	return s.dialect.lock(ctx, conn, s.queries.prefix, func(db session) error { return s.migrate(ctx, db) })
}

// session is a connection or a transaction.
type session interface {
	querier
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// migrate makes the table that has the version first, to ask it, and writes the
// version last.
func (s *Store) migrate(ctx context.Context, db session) error {
	for i, template := range s.dialect.schema {
		if _, err := db.ExecContext(ctx, withTables(template, s.queries.prefix)); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		if done, err := s.isMigrated(ctx, db); done || err != nil {
			return err
		}
	}
	s.logger.LogAttrs(ctx, slog.LevelInfo, "sqlstore: migrated", slog.Int("version", schemaVersion))
	return nil
}

// isMigrated reports whether there is nothing to do.
func (s *Store) isMigrated(ctx context.Context, db querier) (bool, error) {
	found, err := query(ctx, db, s.queries.version, nil, scanOne[int])
	switch {
	case err != nil:
		return false, err
	case len(found) == 0:
		return false, nil
	case found[0] > schemaVersion:
		return false, fmt.Errorf("%w: it has version %d, and %d is known", ErrNewerSchema, found[0], schemaVersion)
	}
	return found[0] == schemaVersion, nil
}

// migrationLock calls migrate while no other process does, if possible in a
// transaction. The prefix tells stores apart that share a database.
type migrationLock func(ctx context.Context, conn *sql.Conn, prefix string, migrate func(session) error) error

func lockName(prefix string) string { return "sqlstore migration of " + prefix }
