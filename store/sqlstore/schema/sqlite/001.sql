-- Version 1 of the tables of package sqlstore in SQLite, with the default prefix.

CREATE TABLE IF NOT EXISTS wh_schema (
  id INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  origin TEXT NOT NULL) STRICT;

CREATE TABLE IF NOT EXISTS wh_client (
  id BLOB NOT NULL PRIMARY KEY,
  gen INTEGER NOT NULL,
  swept INTEGER NOT NULL,
  url BLOB NOT NULL,
  since INTEGER NOT NULL,
  mark INTEGER NOT NULL,
  chg INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS wh_client_chg ON wh_client (chg);

CREATE TABLE IF NOT EXISTS wh_override (
  client BLOB NOT NULL,
  gen INTEGER NOT NULL,
  entity BLOB NOT NULL,
  url BLOB NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (client, gen, entity)) STRICT, WITHOUT ROWID;

-- Last, so that the version shows only where all tables are.
INSERT INTO wh_schema (id, version, origin) VALUES (1, 1, lower(hex(randomblob(16))))
ON CONFLICT (id) DO UPDATE SET version = excluded.version WHERE version < excluded.version;
