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

// Migrate creates the tables of the store or updates their schema; if they are current,
// it changes nothing. Any number of processes may call it concurrently, such as replicas
// that start together: a lock of the database serializes them. After an error Migrate may
// be called again.
//
// Migrate returns an error if another dialect created the tables, or if the connections to
// MySQL or MariaDB do not have autocommit.
func (s *Store) Migrate(ctx context.Context) error {
	done, err := s.isMigrated(ctx, s.db)
	if errors.Is(err, ErrNewerSchema) {
		return err
	}
	if !done {
		err = s.retry(ctx, func() (outcome, error) {
			err := s.migrateLocked(ctx)
			if err == nil {
				return 0, nil
			}
			return s.classifyUncommitted(err), err
		})
	}
	if err == nil {
		err = s.checkUsable(ctx)
	}
	return wrapError("migrate", err, egress.URL{})
}

// checkUsable checks that the dialect fits the tables and the connections.
func (s *Store) checkUsable(ctx context.Context) error {
	check := s.dialect.usable
	if check.query == "" {
		return nil
	}
	found, err := read(ctx, s, statement{text: withTables(check.query, s.queries.prefix)}, nil, scanOne[bool])
	switch {
	case err != nil:
		return fmt.Errorf("check for %s: %w", check.finding, err)
	case len(found) != 1 || !found[0]:
		return errors.New(check.finding)
	}
	return nil
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

// migrate creates the table of the version first, to read the version, and writes the
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

// isMigrated reports whether the schema is current.
func (s *Store) isMigrated(ctx context.Context, db querier) (bool, error) {
	found, err := query(ctx, db, s.queries.version, nil, scanOne[int])
	switch {
	case err != nil:
		return false, err
	case len(found) == 0:
		return false, nil
	case found[0] > schemaVersion:
		return false, fmt.Errorf("%w: version %d, want at most %d", ErrNewerSchema, found[0], schemaVersion)
	}
	return found[0] == schemaVersion, nil
}

// migrationLock calls migrate under a lock, if possible in a transaction. The prefix
// distinguishes stores that share a database.
type migrationLock func(ctx context.Context, conn *sql.Conn, prefix string, migrate func(session) error) error

func lockName(prefix string) string { return "sqlstore migration of " + prefix }
