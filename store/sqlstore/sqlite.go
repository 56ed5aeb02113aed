package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"strconv"

	"example.com/go-webhookcfg/internal/dialect"
)

// sqLite numbers changes in commit order, in the column chg. That's safe because SQLite has
// one writer at a time, which reads the latest number before it adds its own.
var sqLite = dialectSpec{
	Engine:    dialect.SQLite,
	schema:    schemas,
	directory: "schema/sqlite",
	oneWriter: true,
	lock:      lockSQLite,
	touch: `
INSERT INTO {client} (id, gen, swept, url, since, mark, vacated, chg)
VALUES (@client, {now}, {now}, x'', 0, @mark, {vacated}, ` + sqLiteNewest + ` + 1)
ON CONFLICT (id) DO UPDATE SET mark = excluded.mark, vacated = excluded.vacated, chg = excluded.chg`,
	put:     put,
	replace: replaceOnConflict,
	setAll: `
INSERT INTO {client} (id, gen, swept, url, since, mark, vacated, chg)
VALUES (@client, {now}, {now}, @url, @since, @mark, {vacated}, ` + sqLiteNewest + ` + 1)
ON CONFLICT (id) DO UPDATE
SET gen = gen + 1, url = excluded.url, since = excluded.since, mark = excluded.mark, vacated = excluded.vacated, chg = excluded.chg`,
	url:              "@url",
	replaceDelivery:  replaceDelivery,
	expireDeliveries: expireDeliveries,
	changes: `
SELECT {standby}, {identity} AS identity, '0:' || (newest + 1) || ':', newest, erased_chg, NULL
FROM (SELECT ` + sqLiteNewest + ` AS newest, erased_chg FROM {schema} WHERE id = 1) q
UNION ALL
SELECT false, NULL, NULL, NULL, NULL, id FROM (
  SELECT id FROM {client} WHERE chg >= CAST(@since AS INTEGER) ORDER BY chg LIMIT @limit) q`,
	countErased: `
UPDATE {schema} SET erased = erased + 1, erased_chg = max(erased_chg, @chg)
WHERE id = 1 AND NOT EXISTS (SELECT id FROM {client} WHERE id = @client)`,
	change:   `chg`,
	identity: `(SELECT origin FROM {schema} WHERE id = 1)`,
	standby:  `false`,
	check:    `SELECT version, origin <> '', {standby} FROM {schema} WHERE id = 1`,
	unfit:    errOtherDialect,
	code:     sqLiteCode,
	codes:    "result code",
	outcomes: sqLiteOutcomes,
}

// sqLiteNewest is an expression for the highest number of a change, including erased clients.
const sqLiteNewest = `max(COALESCE((SELECT MAX(chg) FROM {client}), 0), (SELECT erased_chg FROM {schema} WHERE id = 1))`

// lockSQLite takes SQLite's write lock when the transaction starts. Package database/sql has
// no option for that.
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

// Primary codes, from "Result and Error Codes" of the SQLite Documentation. I/O errors aren't
// here: after a failed fsync, the content of the disk is unknown.
var sqLiteOutcomes = provedOutcomes{
	"5":  outcomeConflict, // SQLITE_BUSY
	"6":  outcomeConflict, // SQLITE_LOCKED
	"8":  outcomeFailed,   // SQLITE_READONLY
	"13": outcomeFailed,   // SQLITE_FULL
	"19": outcomeFailed,   // SQLITE_CONSTRAINT
}

// sqLiteCode returns the primary result code. A driver has a method or a field for it.
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
