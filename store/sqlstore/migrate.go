package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"

	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Versions of the schema: the first one, which creates the tables, and the oldest one that
// the store works with. The latest one, to which Migrate leads, is that of the last file.
const (
	firstVersion  = 3
	oldestVersion = 3
)

// schemas has a directory of files for each dialect.
//
//go:embed schema
var schemas embed.FS

// migration is a file of a schema. It leads the tables there from the version before, and also
// if it ran already or was interrupted. Its last statement sets the version. A process of the
// version before keeps working with the result.
type migration struct {
	version    int
	statements []string
}

// migrations returns the migrations of a dialect, from the first version to the latest.
func (g *dialectSpec) migrations(prefix string) (all []migration) {
	for version := firstVersion; ; version++ {
		text, err := fs.ReadFile(g.schema, fmt.Sprintf("%s/%03d.sql", g.directory, version))
		if err != nil {
			return all // a test reads the files
		}
		all = append(all, migration{version, splitStatements(string(text), prefix)})
	}
}

// splitStatements returns the statements of a file, for tables with a prefix. Neither a
// statement nor a comment contains a semicolon.
func splitStatements(text, prefix string) (statements []string) {
	for part := range strings.SplitSeq(text, ";") {
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
// Migrate also returns an error if another dialect created them, if the connections to
// MySQL or MariaDB do not have autocommit, or if the tables are of version 1 or 2 of the
// schema, which were never released. Such tables stay as they are: drop them, or choose
// another prefix.
func (s *Store) Migrate(ctx context.Context) error {
	err := s.check(ctx, s.latestVersion())
	if err != nil && !isFinal(err) && !errors.Is(err, s.dialect.unfit) {
		err = s.retry(ctx, func() (outcome, error) { return s.attempted(s.migrateLocked(ctx)) })
		if err == nil {
			err = s.check(ctx, s.latestVersion())
		}
	}
	return s.wrapError("migrate", err, egress.URL{})
}

// isFinal reports whether an error of a check is one that no migration ends.
func isFinal(err error) bool {
	return errors.Is(err, ErrNewerSchema) || errors.Is(err, errOldSchema) || errors.Is(err, ErrStandby)
}

func (s *Store) latestVersion() int { return s.migrations[len(s.migrations)-1].version }

// ready returns nil if a check has found a schema that the store works with, now or earlier.
// Until then every call makes its own check, so that none waits for that of another.
func (s *Store) ready(ctx context.Context) error {
	if s.isReady.Load() {
		return nil
	}
	return s.check(ctx, oldestVersion)
}

// check checks, with one query, that the schema has the needed version or a later one that is
// known, and was made for the dialect, and that the connections are fit for it.
func (s *Store) check(ctx context.Context, needed int) error {
	return s.retry(ctx, func() (outcome, error) {
		found, err := findSchema(ctx, s.db, s.queries.check)
		switch {
		case err != nil:
			err = fmt.Errorf("check of the schema, which Migrate creates: %w", err)
		case found.version > s.latestVersion():
			err = s.newerSchema(found.version)
		case found.isOld():
			err = s.oldSchema(found.version)
		case found.version < 1:
			err = missingSchema(found.version, needed)
		case !found.fit:
			err = s.dialect.unfit
		case found.standby:
			err = ErrStandby
		case found.version < needed:
			err = missingSchema(found.version, needed)
		default:
			s.isReady.Store(true)
		}
		return s.attempted(err)
	})
}

var (
	errOtherDialect = errors.New("tables of another dialect")
	// errOldSchema is wrapped by the error for tables that no migration updates.
	errOldSchema = errors.New("schema of a version that was never released")
)

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

// isOld reports that there are tables of a version before the first.
func (f foundSchema) isOld() bool { return f.version > 0 && f.version < firstVersion }

func missingSchema(found, needed int) error {
	return fmt.Errorf("schema has version %d, want %d: call Migrate", found, needed)
}

func (s *Store) oldSchema(found int) error {
	tables := withTables("{schema}, {client}, {override} and {delivery}", s.queries.prefix)
	return fmt.Errorf("%w: version %d: drop the tables %s, which loses what clients have set, or choose another Options.Prefix, and call Migrate", errOldSchema, found, tables)
}

func (s *Store) newerSchema(found int) error {
	return fmt.Errorf("%w: version %d, want at most %d", ErrNewerSchema, found, s.latestVersion())
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
	if _, err := db.ExecContext(ctx, s.migrations[0].statements[0]); err != nil {
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
	switch {
	case found.version > s.latestVersion():
		return s.newerSchema(found.version)
	case found.isOld():
		return s.oldSchema(found.version)
	}
	for _, m := range s.migrations {
		if m.version <= found.version {
			continue
		}
		for _, statement := range m.statements {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		s.logger.LogAttrs(ctx, slog.LevelInfo, "sqlstore: migrated", slog.Int("version", m.version))
	}
	return nil
}

// migrationLock calls migrate under a lock, if possible in a transaction. The prefix
// distinguishes stores that share a database.
type migrationLock func(ctx context.Context, conn *sql.Conn, prefix string, migrate func(session) error) error

func lockName(prefix string) string { return "sqlstore migration of " + prefix }
