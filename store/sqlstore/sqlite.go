package sqlstore

import (
	"context"
	"database/sql"
)

// sqLite numbers the changes in commit order, in the column chg: SQLite has one writer
// at a time, which reads the latest number before it adds its own.
var sqLite = dialectSpec{
	name:      "SQLite",
	oneWriter: true,
	schema: []string{
		`CREATE TABLE IF NOT EXISTS {schema} (
  id INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  origin TEXT NOT NULL) STRICT`,
		`CREATE TABLE IF NOT EXISTS {client} (
  id BLOB NOT NULL PRIMARY KEY,
  gen INTEGER NOT NULL,
  swept INTEGER NOT NULL,
  url BLOB NOT NULL,
  since INTEGER NOT NULL,
  mark INTEGER NOT NULL,
  chg INTEGER NOT NULL) STRICT, WITHOUT ROWID`,
		`CREATE INDEX IF NOT EXISTS {client_chg} ON {client} (chg)`,
		`CREATE TABLE IF NOT EXISTS {override} (
  client BLOB NOT NULL,
  gen INTEGER NOT NULL,
  entity BLOB NOT NULL,
  url BLOB NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (client, gen, entity)) STRICT, WITHOUT ROWID`,
		`INSERT INTO {schema} (id, version, origin) VALUES (1, 1, lower(hex(randomblob(16))))
ON CONFLICT (id) DO NOTHING`,
	},
	lock: lockSQLite,
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
	changes: `
SELECT {identity} AS identity, '0:9223372036854775807:', (SELECT COALESCE(MAX(chg), 0) FROM {client}), NULL
UNION ALL
SELECT NULL, NULL, NULL, id FROM (
  SELECT id FROM {client} WHERE chg >= CAST(@since AS INTEGER) LIMIT @limit) q`,
	identity: `(SELECT origin FROM {schema} WHERE id = 1)`,
	classify: classifySQLite,
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
