package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Versions of the schema: the latest one, to which Migrate leads; the oldest one that the
// store works with; and the first one that has deliveries.
const (
	schemaVersion   = 2
	oldestVersion   = 1
	deliveryVersion = 2
)

// migrations has a file for each version of the schema of a dialect. It leads there from the
// version before, and also if it ran already or was interrupted. A process of the version
// before keeps working with its result.
//
//go:embed schema
var migrations embed.FS

// migration returns the statements of a file. None contains a semicolon.
func (g *dialectSpec) migration(version int, prefix string) (statements []string) {
	text, err := migrations.ReadFile(fmt.Sprintf("schema/%s/%03d.sql", g.directory, version))
	if err != nil {
		panic(err) // a test reads all of them
	}
	for part := range strings.SplitSeq(string(text), ";") {
		var lines []string
		for line := range strings.Lines(part) {
			if !strings.HasPrefix(line, "--") {
				lines = append(lines, line)
			}
		}
		if statement := strings.TrimSpace(strings.Join(lines, "")); statement != "" {
			statements = append(statements, strings.ReplaceAll(statement, defaultPrefix, prefix))
		}
	}
	return statements
}

// Migrate creates the tables of the store or updates their schema; if they are current,
// it changes nothing. Any number of processes may call it concurrently, such as replicas
// that start together: a lock of the database serializes them. After an error Migrate may
// be called again.
//
// The error wraps [ErrNewerSchema] if a later version of this package migrated the tables,
// and [ErrStandby] if they are current but on a standby.
// Migrate also returns an error if another dialect created them, or if the connections to
// MySQL or MariaDB do not have autocommit.
func (s *Store) Migrate(ctx context.Context) error {
	err := s.check(ctx, schemaVersion)
	if err != nil && !errors.Is(err, ErrNewerSchema) && !errors.Is(err, ErrStandby) && !errors.Is(err, s.dialect.unfit) {
		err = s.retry(ctx, func() (outcome, error) { return s.attempted(s.migrateLocked(ctx)) })
		if err == nil {
			err = s.check(ctx, schemaVersion)
		}
	}
	return s.wrapError("migrate", err, egress.URL{})
}

// ready returns nil if a check has found the version of the schema that the caller needs, or a
// later one, now or earlier. Until then every call makes its own check, so that none waits for
// that of another.
func (s *Store) ready(ctx context.Context, needed int) error {
	if int(s.found.Load()) >= needed {
		return nil
	}
	return s.check(ctx, needed)
}

// check checks, with one query, that the schema has the needed version or a later one that is
// known, and was made for the dialect, and that the connections are fit for it.
func (s *Store) check(ctx context.Context, needed int) error {
	return s.retry(ctx, func() (outcome, error) {
		found, err := findSchema(ctx, s.db, s.queries.check)
		switch {
		case err != nil:
			err = fmt.Errorf("check of the schema: %w", err)
		case found.version > schemaVersion:
			err = found.newer()
		case found.version < oldestVersion:
			err = found.older(needed)
		case !found.fit:
			err = s.dialect.unfit
		case found.standby:
			err = ErrStandby
		case found.version < needed:
			err = found.older(needed)
		default:
			s.found.Store(int32(found.version))
		}
		return s.attempted(err)
	})
}

var errOtherDialect = errors.New("tables of another dialect")

// foundSchema is the result of the query of a check; the zero value if the tables are not
// complete.
type foundSchema struct {
	version int
	fit     bool
	standby bool
}

func findSchema(ctx context.Context, db querier, q statement) (foundSchema, error) {
	found, err := query(ctx, db, q, nil, func(rows *sql.Rows) (f foundSchema, err error) {
		err = rows.Scan(&f.version, &f.fit, &f.standby)
		return f, err
	})
	if err != nil || len(found) == 0 {
		return foundSchema{}, err
	}
	return found[0], nil
}

func (f foundSchema) older(needed int) error {
	return fmt.Errorf("schema has version %d, want %d: call Migrate", f.version, needed)
}

func (f foundSchema) newer() error {
	return fmt.Errorf("%w: version %d, want at most %d", ErrNewerSchema, f.version, schemaVersion)
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

// migrate runs the migrations that the tables lack. The first statement of all creates the
// table of the version, and changes nothing if there is one.
func (s *Store) migrate(ctx context.Context, db session) error {
	first := s.dialect.migration(1, s.queries.prefix)[0]
	if _, err := db.ExecContext(ctx, first); err != nil {
		return err
	}
	versions, err := query(ctx, db, s.queries.version, nil, scanOne[int])
	if err != nil {
		return err
	}
	var found foundSchema
	if len(versions) > 0 {
		found.version = versions[0]
	}
	if found.version > schemaVersion {
		return found.newer()
	}
	for version := max(found.version, 0) + 1; version <= schemaVersion; version++ {
		for _, statement := range s.dialect.migration(version, s.queries.prefix) {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		s.logger.LogAttrs(ctx, slog.LevelInfo, "sqlstore: migrated", slog.Int("version", version))
	}
	return nil
}

// migrationLock calls migrate under a lock, if possible in a transaction. The prefix
// distinguishes stores that share a database.
type migrationLock func(ctx context.Context, conn *sql.Conn, prefix string, migrate func(session) error) error

func lockName(prefix string) string { return "sqlstore migration of " + prefix }
