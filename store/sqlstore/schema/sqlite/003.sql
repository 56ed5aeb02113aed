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

-- What is set, for people: without the paths and queries of URLs, and without rows that no longer
-- count. Entity is NULL for the base, origin is NULL for an override that is off.
CREATE VIEW IF NOT EXISTS wh_webhook AS
SELECT CAST(w.client AS TEXT) AS client, CAST(w.entity AS TEXT) AS entity, w.source,
  CASE WHEN (lower(w.url) GLOB 'https://*' OR lower(w.url) GLOB 'http://*') AND instr(w.authority, '@') = 0
    THEN lower(substr(w.url, 1, instr(w.url, '://') + 2) || w.authority) END AS origin,
  strftime('%Y-%m-%dT%H:%M:%fZ', w.since / 1000000.0, 'unixepoch') AS since
FROM (
  SELECT v.*, substr(v.rest, 1, instr(replace(replace(replace(v.rest, '?', '/'), '#', '/'), char(92), '/') || '/', '/') - 1) AS authority
  FROM (
    SELECT CAST(t.url AS TEXT) AS url, substr(CAST(t.url AS TEXT), instr(CAST(t.url AS TEXT), '://') + 3) AS rest,
      t.client, t.entity, t.source, t.since
    FROM (
      SELECT id AS client, NULL AS entity, 'base' AS source, url, since FROM wh_client WHERE length(url) > 0
      UNION ALL
      SELECT o.client, o.entity, CASE WHEN length(o.url) > 0 THEN 'override' ELSE 'off' END, o.url, o.since
      FROM wh_override o JOIN wh_client c ON c.id = o.client AND c.gen = o.gen) t) v) w;

-- Last, so that the version shows only where all tables are. Those of another version keep it. After a
-- table was lost, copies of the webhooks have to start over, so the origin is another one.
INSERT INTO wh_schema (id, version, origin) VALUES (1, 3, lower(hex(randomblob(16))))
ON CONFLICT (id) DO UPDATE SET version = excluded.version, origin = excluded.origin WHERE version < 1;
