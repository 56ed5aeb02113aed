package outbox

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strings"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

//go:embed schema
var schemas embed.FS

const schemaVersion = 2

var (
	// ErrNewerSchema means that a later version of this package has migrated the tables.
	// Start that version, or a later one.
	ErrNewerSchema = errors.New("outbox: schema of a later version of this package")
	// ErrNoTables means that none of the tables is there, or that they were made for another
	// dialect. Call [Outbox.Migrate], or choose another prefix.
	ErrNoTables = errors.New("outbox: the tables are missing")

	// errFormer is for tables of the queue that came before this one.
	errFormer = errors.New("outbox: tables of an earlier version")
	// errIncomplete is for tables that a migration completes, and errTablesLost for those that
	// it must not create again.
	errIncomplete = errors.New("outbox: tables are missing or incomplete")
	errTablesLost = errors.New("outbox: a table was lost")
	// errKeyless is for tables that are being restored, or that were restored without their keys.
	errKeyless = errors.New("outbox: primary keys are missing")
)

// isWithoutTables reports whether an error says that tables have to be created or restored.
func isWithoutTables(err error) bool {
	return errors.Is(err, ErrNoTables) || errors.Is(err, errFormer) || errors.Is(err, errIncomplete) || errors.Is(err, errTablesLost) || errors.Is(err, errKeyless)
}

// Schema returns the statements that [Outbox.Migrate] runs, for your own migration tool. You
// can run them repeatedly. Pass the prefix of your [Options]. With the default prefix, your
// tool can use the files in the directory schema instead.
func Schema(d sqlstore.Dialect, prefix string) ([]string, error) {
	e, err := queue.EngineOf(d)
	if err != nil {
		return nil, err
	}
	if prefix, err = tablePrefix(prefix); err != nil {
		return nil, err
	}
	return schemaOf(e, prefix)
}

func schemaOf(e *queue.Engine, prefix string) ([]string, error) {
	text, err := schemas.ReadFile("schema/" + strings.ToLower(e.Name) + ".sql")
	return dialect.Schema(string(text), prefix), err
}

// Migrate creates the tables. If they're there, it changes nothing. Any number of processes
// can call it at the same time. After an error you can call it again.
//
// If one of the tables was lost, for example in an incomplete restore, you get an error that names
// it. Migrate doesn't create it again, because nobody would notice what's missing. Once you have
// followed the error, Migrate sees that notifications that still wait are sent.
func (o *Outbox) Migrate(ctx context.Context) error {
	err := o.tables.check(ctx)
	if err == nil || errors.Is(err, ErrNewerSchema) || errors.Is(err, errFormer) || errors.Is(err, errTablesLost) || errors.Is(err, errKeyless) {
		return err
	}
	if err := o.tables.migrate(ctx); err != nil {
		return fmt.Errorf("outbox: migrate: %w", err)
	}
	return o.tables.check(ctx)
}

// Check returns a warning for each setting of the database, its connections or their pool that
// could lose notifications, delay those of a process that dies, or make calls fail under load.
// Each warning says what to change. They're those of [sqlstore.Store.Check], and on MariaDB one
// more, for transactions of frozen processes. Call Check after [Outbox.Migrate], and log the
// warnings.
//
// Check returns an error if the outbox can't work with the tables: one that wraps [ErrNoTables] or
// [ErrNewerSchema], one that names the tables that are missing while others are there, or what a restore
// has left out of the table in which [Outbox.Enqueue] inserts, or that of the driver.
func (o *Outbox) Check(ctx context.Context) (warnings []string, err error) {
	if err := o.tables.check(ctx); err != nil {
		return nil, err
	}
	if err := o.tables.checkInserts(ctx); err != nil {
		return nil, err
	}
	return o.tables.Engine.Advise(ctx, o.tables.DB, advices[o.tables.Engine.Name]...)
}

// advices are beyond those for all packages.
var advices = map[string][]dialect.Advice{
	// MySQL has no such variable, and takes what's in a comment of MariaDB for a comment.
	dialect.MySQL.Name: {{
		When: `/*M! @@session.idle_write_transaction_timeout NOT BETWEEN 1 AND 5 OR */ 1 = 0`,
		Text: "others can't go on with the clients of a process that froze in a transaction: set idle_write_transaction_timeout to 4 in the DSN; this ends all transactions of this pool that idle for longer, also yours: if yours do, give the store and Run a pool of their own",
	}},
}

// Healthy returns nil if the database responds, has all tables of the outbox, in a version that this
// process works with, and executes statements that change and insert. On PostgreSQL, it also looks at keys,
// and at the sequence of notifications if the user may read that. Otherwise the error names what's missing
// and says what to do. Use it for an alert: while tables are missing, [Outbox.Run] waits for them once it
// has started. If Run has ended with an error, Healthy returns that error until you call Run again. The
// statements change no row, so Healthy doesn't notice a full disk.
//
// You can call Healthy as often as you like. It asks the database at most once a second, for at
// most five seconds. Calls in between get the same result.
func (o *Outbox) Healthy(ctx context.Context) error {
	o.mu.Lock()
	ended := o.ended
	o.mu.Unlock()
	if ended != nil {
		return fmt.Errorf("outbox: Run has ended, so this process sends nothing until it calls Run again: %w", ended)
	}
	return o.tables.health.Do(ctx, func(ctx context.Context) error {
		err := o.tables.check(ctx)
		if o.tables.fitted.Load() && errors.Is(err, ErrNewerSchema) {
			err = nil // the newer tables stay usable for this process until it ends
		}
		if err != nil {
			return err
		}
		if err := o.tables.checkInserts(ctx); err != nil {
			return err
		}
		for _, statement := range []string{changesNothing, insertsNothing} {
			if _, err := o.tables.Exec(ctx, o.tables.DB, statement, values{"client": []byte{}}); err != nil {
				return fmt.Errorf("outbox: changes fail: %w", err)
			}
		}
		return nil
	})
}

// changesNothing fails if the database or its connections are read-only. No client has an empty name.
const changesNothing = `UPDATE {message} SET attempts = attempts WHERE client = @client`

// insertsNothing fails if the user may change rows, but not insert any.
const insertsNothing = `INSERT INTO {message} (client, entity, id, enqueued, content_type, body) SELECT client, entity, id, enqueued, content_type, body FROM {message} WHERE client = @client AND 1 = 0`

// insertDefects finds what keeps rows from being inserted where a restore can leave it out: 1 is the unique key,
// and 2 what gives rows their number. It also returns the sequence, if the user may read that.
var insertDefects = map[string]string{dialect.PostgreSQL.Name: `
SELECT CASE
  WHEN NOT EXISTS (SELECT 1 FROM pg_index WHERE indrelid = '{message}'::regclass AND indisunique AND NOT indisprimary) THEN 1
  WHEN q.name IS NULL AND NOT EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = '{message}'::regclass AND attname = 'seq' AND atthasdef) THEN 2
  ELSE 0 END, CASE WHEN has_sequence_privilege(q.name, 'SELECT') THEN q.name ELSE '' END
FROM (SELECT pg_get_serial_sequence('{message}', 'seq') AS name) q`}

// isBehind reports whether the next number of a sequence is taken. Replication doesn't copy where it is.
const isBehind = `SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END < (SELECT COALESCE(MAX(seq), 0) FROM {message}) FROM `

// checkInserts returns an error if [Outbox.Enqueue] would fail although the tables are there.
func (t *tables) checkInserts(ctx context.Context) error {
	text := insertDefects[t.Engine.Name]
	if text == "" {
		return nil
	}
	defect, sequence, behind := 0, "", false
	err := t.Query(ctx, t.DB, text, nil, func(rows *sql.Rows) error { return rows.Scan(&defect, &sequence) })
	if err == nil && sequence != "" {
		err = t.Query(ctx, t.DB, isBehind+sequence, nil, func(rows *sql.Rows) error { return rows.Scan(&behind) })
	}
	if err != nil {
		return fmt.Errorf("outbox: check: %w", err)
	}
	name := t.Prefix + "outbox_message"
	numbers := "SELECT setval(pg_get_serial_sequence('" + name + "', 'seq'), (SELECT MAX(seq) FROM " + name + "))"
	switch {
	case defect == 1:
		return fmt.Errorf("outbox: %s has lost its unique key, so nothing can be enqueued: wait if a restore is under way; otherwise run ALTER TABLE %s ADD UNIQUE (client, id)", name, name)
	case defect == 2:
		return fmt.Errorf("outbox: %s has lost its sequence, so nothing can be enqueued: wait if a restore is under way; otherwise run ALTER TABLE %s ALTER seq ADD GENERATED BY DEFAULT AS IDENTITY; %s", name, name, numbers)
	case behind:
		return fmt.Errorf("outbox: the sequence of %s is behind its rows, so what's enqueued gets numbers that are taken, and fails: wait if a restore or a failover is under way; otherwise run %s", name, numbers)
	}
	return nil
}

// migrationLock keeps two processes from migrating at a time, where a statement alone doesn't.
var migrationLock = map[string]string{dialect.PostgreSQL.Name: `SELECT pg_advisory_xact_lock(hashtext('{message}'))`}

func (t *tables) migrate(ctx context.Context) error {
	statements, err := schemaOf(t.Engine, t.Prefix)
	if err != nil {
		return err
	}
	create := func(c conn) error {
		for _, s := range statements {
			if _, err := c.ExecContext(ctx, s); err != nil {
				return err
			}
		}
		return nil
	}
	lock := migrationLock[t.Engine.Name]
	if lock == "" {
		return create(t.DB)
	}
	return t.Transaction(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, t.Statement(lock).Text); err != nil {
			return err
		}
		return create(tx)
	})
}

func (t *tables) check(ctx context.Context) error {
	version, name := 0, ""
	text := `SELECT version, dialect FROM {schema} WHERE id = 1` + t.Engine.Present(t.names)
	err := t.Query(ctx, t.DB, text, nil, func(rows *sql.Rows) error { return rows.Scan(&version, &name) })
	switch {
	case err != nil:
		return t.explain(ctx, err)
	case name == "":
		return t.explainNoRow(ctx)
	case version > schemaVersion:
		return fmt.Errorf("%w: the tables have version %d, and this process knows up to %d", ErrNewerSchema, version, schemaVersion)
	case version < schemaVersion:
		return t.former()
	case name != t.Engine.Name:
		return fmt.Errorf("%w: those with this prefix were made for %s: pass that dialect to New, or choose another Options.Prefix", ErrNoTables, name)
	}
	t.fitted.Store(true)
	return nil
}

// explainNoRow returns the error for a check that found no row with the version: a migration hasn't
// ended, or keys are missing.
func (t *tables) explainNoRow(ctx context.Context) error {
	keyless, err := t.Engine.WithoutKey(ctx, t.DB, t.names)
	switch {
	case err != nil:
		return fmt.Errorf("outbox: check: %w", err)
	case len(keyless) > 0:
		return fmt.Errorf("%w: %s", errKeyless, dialect.RestoreKeys(keyless))
	}
	return fmt.Errorf("%w: call Migrate", errIncomplete)
}

// explain returns the error for a check that failed: the cause, unless tables are missing. It reads
// the version first: if that was there, no migration is under way that creates them.
func (t *tables) explain(ctx context.Context, cause error) error {
	version := 0
	_ = t.Query(ctx, t.DB, `SELECT version FROM {schema} WHERE id = 1`, nil, func(rows *sql.Rows) error { return rows.Scan(&version) }) // there may be no table
	missing, err := t.Engine.Missing(ctx, t.DB, t.names, cause)
	names, schema := strings.Join(missing, ", "), t.names[0]
	restore := "restore it from a backup, and all of " + strings.Join(t.names, ", ") + " from the same one, with their keys, indexes and sequences"
	switch {
	case err != nil || len(missing) == 0:
		return fmt.Errorf("outbox: check: %w", cause)
	case len(missing) == len(t.names):
		return fmt.Errorf("%w: there's none with the prefix %s: call Migrate", ErrNoTables, t.Prefix)
	case missing[0] == schema:
		return fmt.Errorf("%w: %s: %s, or, if a migration was interrupted, call Migrate", errIncomplete, names, restore)
	case version == 0:
		return fmt.Errorf("%w: %s: call Migrate", errIncomplete, names)
	case version < schemaVersion:
		return t.former()
	}
	return fmt.Errorf("%w: %s: %s; only if you can do without what was in it, drop the table %s and call Migrate, which creates both", errTablesLost, names, restore, schema)
}

// former returns the error for tables of an earlier version.
func (t *tables) former() error {
	return fmt.Errorf("%w, which this one can't read: let the version that made them deliver what waits, then drop the tables %soutbox_… and call Migrate, or choose another Options.Prefix", errFormer, t.Prefix)
}
