package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"
)

// sqLite numbers the changes in commit order, in the column chg: SQLite has one writer
// at a time, which reads the latest number before it adds its own.
var sqLite = dialectSpec{
	name:      "SQLite",
	schema:    schemas,
	directory: "schema/sqlite",
	oneWriter: true,
	lock:      lockSQLite,
	touch: `
INSERT INTO {client} (id, gen, swept, url, since, mark, chg)
VALUES (@client, 0, 0, x'', 0, @mark, (SELECT COALESCE(MAX(chg), 0) + 1 FROM {client}))
ON CONFLICT (id) DO UPDATE SET mark = excluded.mark, chg = excluded.chg`,
	put:     put,
	replace: replaceOnConflict,
	setAll: `
INSERT INTO {client} (id, gen, swept, url, since, mark, chg)
VALUES (@client, 1, 1, @url, @since, @mark, (SELECT COALESCE(MAX(chg), 0) + 1 FROM {client}))
ON CONFLICT (id) DO UPDATE
SET gen = gen + 1, url = excluded.url, since = excluded.since, mark = excluded.mark, chg = excluded.chg`,
	replaceDelivery:  replaceDelivery,
	expireDeliveries: expireDeliveries,
	changes: `
SELECT {standby}, {identity} AS identity, '0:' || (newest + 1) || ':', newest, NULL
FROM (SELECT COALESCE(MAX(chg), 0) AS newest FROM {client}) q
UNION ALL
SELECT false, NULL, NULL, NULL, id FROM (
  SELECT id FROM {client} WHERE chg >= CAST(@since AS INTEGER) LIMIT @limit) q`,
	identity: `(SELECT origin FROM {schema} WHERE id = 1)`,
	standby:  `false`,
	check:    `SELECT version, origin <> '', {standby} FROM {schema} WHERE id = 1`,
	unfit:    errOtherDialect,
	code:     sqLiteCode,
	codes:    "result code",
	outcomes: sqLiteOutcomes,
}

// lockSQLite takes SQLite's write lock at the start of the transaction, for which
// package database/sql has no option.
func lockSQLite(ctx context.Context, conn *sql.Conn, _ string, migrate func(session) error) error {
	if _, err := conn.ExecContext(ctx, `BEGIN IMMEDIATE`); err != nil {
		return err
	}
	err := migrate(conn)
	if err == nil {
		_, err = conn.ExecContext(ctx, `COMMIT`)
	}
	if err != nil {
		release(ctx, conn, `ROLLBACK`)
	}
	return err
}

// SQLite Documentation, "Result and Error Codes": primary codes. After an I/O error, for
// instance of fsync, the content of the disk is unknown.
var sqLiteOutcomes = provedOutcomes{
	"5":  outcomeConflict, // SQLITE_BUSY
	"6":  outcomeConflict, // SQLITE_LOCKED
	"8":  outcomeFailed,   // SQLITE_READONLY
	"13": outcomeFailed,   // SQLITE_FULL
	"19": outcomeFailed,   // SQLITE_CONSTRAINT
}

// sqLiteCode returns the primary result code, for which a driver has a method or a field.
func sqLiteCode(err error) string {
	e, ok := errors.AsType[interface {
		error
		Code() int
	}](err)
	if ok {
		return strconv.Itoa(e.Code() & 0xff)
	}
	if code, ok := integerField(err, "Code"); ok {
		return strconv.FormatInt(code&0xff, 10)
	}
	return ""
}
