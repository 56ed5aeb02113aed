package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"hash/fnv"
	"regexp"

	"example.com/go-webhookcfg/internal/dialect"
)

// postgreSQL sets one entity in a single statement. Its first part locks the row of the
// client and returns the generation, and its second part writes the override.
//
// The column chg has the number of the transaction that last changed the client.
var postgreSQL = dialectSpec{
	Engine:    dialect.PostgreSQL,
	schema:    schemas,
	directory: "schema/postgresql",
	lock:      lockPostgreSQL,
	touch:     postgreSQLTouch,
	put: `
INSERT INTO {override} (client, gen, entity, url, since)
SELECT id, gen, @entity::bytea, @url::bytea, @since::bigint FROM {client} WHERE id = @client`,
	replace: replaceOnConflict,
	set: `
WITH touched AS (` + postgreSQLTouch + ` RETURNING gen)
INSERT INTO {override} (client, gen, entity, url, since)
SELECT @client::bytea, gen, @entity::bytea, @url::bytea, @since::bigint FROM touched` + replaceOnConflict,
	setAll: `
INSERT INTO {client} AS c (id, gen, swept, url, since, mark, vacated, chg)
VALUES (@client::bytea, {now}, {now}, @url::bytea, @since::bigint, @mark::bigint, {vacated}, pg_current_xact_id())
ON CONFLICT (id) DO UPDATE
SET gen = c.gen + 1, url = EXCLUDED.url, since = EXCLUDED.since, mark = EXCLUDED.mark, vacated = EXCLUDED.vacated, chg = EXCLUDED.chg`,
	url:              "@url::bytea",
	replaceDelivery:  replaceDelivery,
	expireDeliveries: expireDeliveries,
	// A transaction that ended isn't read again, even if an earlier one is still running.
	// Don't use xmin here: a long transaction holds it back, even in another database.
	//
	// A standby's snapshot doesn't list the running transactions.
	changes: `
SELECT {standby}, {identity} AS identity, CASE WHEN pg_is_in_recovery()
    THEN concat_ws(':', pg_snapshot_xmin(pg_current_snapshot()), pg_snapshot_xmin(pg_current_snapshot()), '')
    ELSE pg_current_snapshot()::text END,
  COALESCE((SELECT n.chg::text::bigint FROM {client} n WHERE n.chg < pg_snapshot_xmax(pg_current_snapshot())
    ORDER BY n.chg DESC LIMIT 1), 0),
  (SELECT CASE WHEN erased_chg < ` + postgreSQLLimit + ` THEN erased_chg ELSE 0 END FROM {schema} WHERE id = 1), NULL
UNION ALL
(SELECT false, NULL, NULL, NULL, NULL, id FROM {client}
  WHERE chg >= @since::text::xid8 AND chg < pg_snapshot_xmax(pg_current_snapshot()) ORDER BY chg LIMIT @limit)
UNION ALL
SELECT false, NULL, NULL, NULL, NULL, id FROM {client} WHERE chg = ANY (@running::text::xid8[])`,
	countErased: `
UPDATE {schema} SET erased = erased + 1, erased_chg = COALESCE((SELECT max(n)
  FROM (VALUES (erased_chg), (@chg::bigint)) v (n) WHERE n < ` + postgreSQLLimit + `), 0)
WHERE id = 1 AND NOT EXISTS (SELECT id FROM {client} WHERE id = @client)`,
	change: `chg::text::bigint`,
	// The identity changes when a server starts, so also after a restored backup or a
	// failover, and when one of the tables is created again or emptied.
	identity: `(extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint::text || '-' ||
  pg_relation_filenode('{client}'::regclass)::text || '-' || pg_relation_filenode('{override}'::regclass)::text`,
	// A change that's missing here was committed after the last one that was replayed.
	standby: `pg_is_in_recovery()`,
	// The sub-select fails if there's no column chg, which the feed needs.
	check:    `SELECT version, (SELECT COUNT(chg::xid8) FROM {client} WHERE id IS NULL) = 0, {standby} FROM {schema} WHERE id = 1`,
	unfit:    errOtherDialect,
	code:     postgreSQLCode,
	codes:    "SQLSTATE",
	outcomes: postgreSQLOutcomes,
}

// postgreSQLLimit is above the number of each transaction that this server has completed. A dump
// of another server can bring higher ones, which stand for no change here.
const postgreSQLLimit = `pg_snapshot_xmax(pg_current_snapshot())::text::bigint`

const postgreSQLTouch = `
INSERT INTO {client} AS c (id, gen, swept, url, since, mark, vacated, chg)
VALUES (@client::bytea, {now}, {now}, '', 0, @mark::bigint, {vacated}, pg_current_xact_id())
ON CONFLICT (id) DO UPDATE SET mark = EXCLUDED.mark, vacated = EXCLUDED.vacated, chg = EXCLUDED.chg`

// lockPostgreSQL takes an advisory lock that ends with the transaction, so it works through a
// connection pooler too. Each statement has a new snapshot, so that the migration sees the
// work of the process it waited for.
func lockPostgreSQL(ctx context.Context, conn *sql.Conn, prefix string, migrate func(session) error) error {
	tx, err := conn.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // no effect after a commit
	key := fnv.New64a()
	_, _ = key.Write([]byte(lockName(prefix)))
	if _, err := tx.ExecContext(ctx, `SELECT pg_advisory_xact_lock($1)`, int64(key.Sum64())); err != nil {
		return err
	}
	if err := migrate(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// SQLSTATEs, from appendix A "PostgreSQL Error Codes" of the PostgreSQL Manual. Two
// characters stand for the rest of their class.
var postgreSQLOutcomes = provedOutcomes{
	"23":    outcomeFailed,   // integrity constraint violation, of a deferred constraint
	"25006": outcomeFailed,   // read only SQL transaction
	"40":    outcomeFailed,   // transaction rollback
	"40001": outcomeConflict, // serialization failure
	"40P01": outcomeConflict, // deadlock detected
	"40003": outcomeUnknown,  // statement completion unknown
}

// postgreSQLCode returns the SQLSTATE. The drivers have a method for it.
func postgreSQLCode(err error) string {
	e, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if !ok || !statePattern.MatchString(e.SQLState()) {
		return ""
	}
	return e.SQLState()
}

var statePattern = regexp.MustCompile(`^[0-9A-Z]{5}$`)
