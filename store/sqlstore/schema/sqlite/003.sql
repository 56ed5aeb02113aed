-- Version 3 of the tables of package sqlstore in SQLite, with the default prefix.
-- Versions 1 and 2 were never released, and the store refuses them. Times are in
-- microseconds of Unix time.

-- Erased is the number of clients whose rows were deleted, erased_chg the highest chg of these.
CREATE TABLE IF NOT EXISTS wh_schema (
  id INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  origin TEXT NOT NULL,
  erased INTEGER NOT NULL DEFAULT 0,
  erased_chg INTEGER NOT NULL DEFAULT 0) STRICT;

-- The url and since of the base. Without a base, url is empty, and since is the time of the
-- last unset of all, 0 if there was none. Vacated is the time of a change after which the client
-- may have neither a base nor overrides, 0 if it has.
CREATE TABLE IF NOT EXISTS wh_client (
  id BLOB NOT NULL PRIMARY KEY,
  gen INTEGER NOT NULL,
  swept INTEGER NOT NULL,
  url BLOB NOT NULL,
  since INTEGER NOT NULL,
  mark INTEGER NOT NULL,
  vacated INTEGER NOT NULL,
  chg INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS wh_client_chg ON wh_client (chg);

CREATE TABLE IF NOT EXISTS wh_override (
  client BLOB NOT NULL,
  gen INTEGER NOT NULL,
  entity BLOB NOT NULL,
  url BLOB NOT NULL,
  since INTEGER NOT NULL,
  PRIMARY KEY (client, gen, entity)) STRICT, WITHOUT ROWID;

-- The entity of a client's base is empty. State is 1 for a webhook that was stopped, reason
-- the number of a reason, and latest the later one of last_success and last_failure.
CREATE TABLE IF NOT EXISTS wh_delivery (
  client BLOB NOT NULL,
  entity BLOB NOT NULL,
  since INTEGER NOT NULL,
  state INTEGER NOT NULL,
  reason INTEGER NOT NULL,
  last_success INTEGER NOT NULL,
  last_failure INTEGER NOT NULL,
  first_failure INTEGER NOT NULL,
  latest INTEGER NOT NULL,
  PRIMARY KEY (client, entity)) STRICT, WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS wh_delivery_latest ON wh_delivery (latest);

-- Last, so that the version shows only where all tables are. Those of another version keep it.
INSERT INTO wh_schema (id, version, origin) VALUES (1, 3, lower(hex(randomblob(16))))
ON CONFLICT (id) DO UPDATE SET version = excluded.version WHERE version < 1;
