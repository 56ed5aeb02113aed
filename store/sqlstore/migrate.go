package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"strings"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// Versions of the schema. The first one creates the tables, and the oldest one is the lowest
// that the store works with. The latest one is the version of the last file: Migrate leads
// there.
const (
	firstVersion  = 3
	oldestVersion = 3
)

// schemas has a directory of files for each dialect.
//
//go:embed schema
var schemas embed.FS

// migration is a file of a schema. It updates tables of the version before. You can run it
// again, also if it was interrupted. Its last statement sets the version. Processes of the
// version before keep working with the result.
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
		all = append(all, migration{version, dialect.Schema(string(text), prefix)})
	}
}

// tables returns the names of the tables that the store needs.
func (g *dialectSpec) tables(prefix string) (all []string) {
	for _, m := range g.migrations(prefix) {
		if m.version <= oldestVersion {
			all = append(all, dialect.Created(m.statements)...)
		}
	}
	return all
}

// Migrate creates the tables of the store, or updates their schema. If they're current, it
// changes nothing. Any number of processes can call it at the same time, for instance when
// they start, because a lock in the database makes them take turns. After an error you can
// call it again.
//
// The error wraps [ErrNewerSchema] if a later version of this package migrated the tables,
// and [ErrStandby] if they're current but on a standby. You also get an error if another
// dialect created the tables, or if the connections to MySQL or MariaDB don't have
// autocommit.
//
// The tables have version 3 of the schema, from the files 003.sql. Versions 1 and 2, which
// kept times in seconds, were never released. Migrate returns an error for such tables and
// leaves them as they are. Drop them, or choose another [Options.Prefix].
//
// If one of the tables was lost, for example in an incomplete restore, you get an error that names
// it. Migrate doesn't create it again: with an empty table of overrides, an entity that was off
// would get what its client has set for all.
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

// isFinal reports whether an error of a check would be the same after a migration.
func isFinal(err error) bool {
	return errors.Is(err, ErrNewerSchema) || errors.Is(err, errOldSchema) || errors.Is(err, errLost) || errors.Is(err, errKeyless) || errors.Is(err, ErrStandby)
}

func (s *Store) latestVersion() int { return s.migrations[len(s.migrations)-1].version }

// ready returns nil once a check has found a schema that the store can use. Until then each
// call makes its own check, so that it doesn't wait for another call's.
func (s *Store) ready(ctx context.Context) error {
	if s.isReady.Load() {
		return nil
	}
	return s.check(ctx, oldestVersion)
}

// check makes one query. It checks that all tables are there, that the schema is for this
// dialect, that its version is known and at least the needed one, and that the connections have
// the right settings. If the query fails, more queries find out which tables are missing.
func (s *Store) check(ctx context.Context, needed int) error {
	return s.retry(ctx, func() (outcome, error) {
		found, err := s.findSchema(ctx)
		switch {
		case err != nil:
		case len(found.keyless) > 0:
			err = fmt.Errorf("%w: %s", errKeyless, dialect.RestoreKeys(found.keyless))
		case found.version > s.latestVersion():
			err = s.newerSchema(found.version)
		case found.isOld():
			err = s.oldSchema(found.version)
		case found.version < 1:
			err = s.incomplete(found, needed)
		case len(found.missing) > 0:
			err = s.lostTables(found.missing)
		case !found.fit:
			err = s.dialect.unfit
		case found.standby:
			err = ErrStandby
		case found.version < needed:
			err = s.incomplete(found, needed)
		default:
			s.isReady.Store(true)
		}
		return s.attempted(err)
	})
}

var (
	errOtherDialect = errors.New("the tables were made for another dialect: pass that dialect to New, or choose another Options.Prefix")
	// errOldSchema is for tables that no migration can update.
	errOldSchema = errors.New("schema of a version that was never released")
	// errLost is for tables that a migration must not create again.
	errLost = errors.New("a table was lost")
	// errKeyless is for tables that are being restored, or that were restored without their keys.
	errKeyless = errors.New("primary keys are missing")
)

// foundSchema is the result of a check. Its version is 0 if a migration hasn't completed.
type foundSchema struct {
	version int
	fit     bool
	standby bool
	missing []string // tables; the rest is unknown then
	keyless []string // tables without a primary key; the rest is unknown then
}

func (s *Store) findSchema(ctx context.Context) (foundSchema, error) {
	scan := func(rows *sql.Rows) (f foundSchema, err error) {
		err = rows.Scan(&f.version, &f.fit, &f.standby)
		return f, err
	}
	found, err := query(ctx, s.db, s.queries.check, nil, scan)
	if err != nil && s.dialect.Denied(err) { // perhaps for deliveries, which this user may not need
		found, err = query(ctx, s.db, s.queries.fit, nil, scan)
	}
	if err != nil {
		return s.findMissing(ctx, err)
	}
	if len(found) == 0 {
		f := foundSchema{}
		f.keyless, err = s.dialect.WithoutKey(ctx, s.db, s.queries.tables)
		return f, err
	}
	return found[0], nil
}

// findMissing returns the missing tables, or the error of the check's query if there are none. It
// reads the version first: if that was there, no migration is under way that creates them.
func (s *Store) findMissing(ctx context.Context, cause error) (f foundSchema, err error) {
	if versions, err := query(ctx, s.db, s.queries.version, nil, scanOne[int]); err == nil && len(versions) > 0 {
		f.version = versions[0]
	}
	f.missing, err = s.dialect.Missing(ctx, s.db, s.queries.tables, cause)
	if err != nil || len(f.missing) == 0 {
		return foundSchema{}, cause
	}
	return f, nil
}

// isOld reports whether the tables are older than the first version.
func (f foundSchema) isOld() bool { return f.version > 0 && f.version < firstVersion }

func (s *Store) incomplete(f foundSchema, needed int) error {
	missing := strings.Join(f.missing, ", ")
	switch len(f.missing) {
	case 0:
	case len(s.queries.tables):
		return fmt.Errorf("tables are missing: %s: call Migrate", missing)
	default:
		return fmt.Errorf("tables are missing: %s: restore them from a backup, with their keys and indexes%s, or, if a migration was interrupted, call Migrate", missing, s.together(f.missing))
	}
	return fmt.Errorf("the tables are incomplete or older (schema version %d, want %d): call Migrate", f.version, needed)
}

func (s *Store) lostTables(missing []string) error {
	contents, after := "", ""
	for _, name := range missing {
		switch strings.TrimPrefix(name, s.queries.prefix) {
		case "client":
			contents = "all webhooks of all clients"
		case "override":
			contents = cmp.Or(contents, "what clients have set for single entities, and those that they turned off can get the default again")
			after = "; if a trigger limited the overrides, it's lost too: then run its file in the directory limit again, or only the statement of the trigger, if the index is there"
		}
	}
	return fmt.Errorf("%w: %s: restore it from a backup, with its keys and indexes%s; only if you can do without %s, UPDATE %s SET version = 0 and call Migrate, which creates it empty%s; in either case, restart every process that has a cache of the webhooks",
		errLost, strings.Join(missing, ", "), s.together(missing), cmp.Or(contents, "what was in it"), s.queries.tables[0], after)
}

// together says which tables have to be of the same backup, if one of them is missing: the generation
// of a client says which of its overrides count.
func (s *Store) together(missing []string) string {
	client, override := s.queries.prefix+"client", s.queries.prefix+"override"
	if !slices.Contains(missing, client) && !slices.Contains(missing, override) {
		return ""
	}
	return fmt.Sprintf(", and both %s and %s from the same one, or dropped overrides can come back", client, override)
}

func (s *Store) oldSchema(found int) error {
	tables := dialect.Tables("{schema}, {client}, {override} and {delivery}", s.queries.prefix)
	return fmt.Errorf("%w: version %d: drop the tables %s, which loses what clients have set, or choose another Options.Prefix, and call Migrate", errOldSchema, found, tables)
}

func (s *Store) newerSchema(found int) error {
	return fmt.Errorf("%w: the tables have version %d, and this process knows up to %d", ErrNewerSchema, found, s.latestVersion())
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

// migrate runs the missing migrations. The very first statement creates the table of the
// version, and changes nothing if the table exists.
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

// migrationLock calls migrate under a lock, in a transaction if possible. The prefix tells
// stores that share a database apart.
type migrationLock func(ctx context.Context, conn *sql.Conn, prefix string, migrate func(session) error) error

func lockName(prefix string) string { return "sqlstore migration of " + prefix }
