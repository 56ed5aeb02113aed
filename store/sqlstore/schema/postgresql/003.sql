-- Version 3 of the tables of package sqlstore in PostgreSQL, with the default prefix.
-- Versions 1 and 2 were never released, and the store refuses them. Times are in
-- microseconds of Unix time.

-- Erased is the number of clients whose rows were deleted, erased_chg the highest chg of these.
CREATE TABLE IF NOT EXISTS wh_schema (
  id integer PRIMARY KEY,
  version integer NOT NULL,
  erased bigint NOT NULL DEFAULT 0,
  erased_chg bigint NOT NULL DEFAULT 0);

-- The url and since of the base. Without a base, url is empty, and since is the time of the
-- last unset of all, 0 if there was none. Vacated is the time of a change after which the client
-- may have neither a base nor overrides, 0 if it has.
CREATE TABLE IF NOT EXISTS wh_client (
  id bytea PRIMARY KEY,
  gen bigint NOT NULL,
  swept bigint NOT NULL,
  url bytea NOT NULL,
  since bigint NOT NULL,
  mark bigint NOT NULL,
  vacated bigint NOT NULL,
  chg xid8 NOT NULL);

CREATE INDEX IF NOT EXISTS wh_client_chg ON wh_client (chg);

CREATE TABLE IF NOT EXISTS wh_override (
  client bytea NOT NULL,
  gen bigint NOT NULL,
  entity bytea NOT NULL,
  url bytea NOT NULL,
  since bigint NOT NULL,
  PRIMARY KEY (client, gen, entity));

-- The entity of a client's base is empty. State is 1 for a webhook that was stopped, reason
-- the number of a reason, and latest the later one of last_success and last_failure.
CREATE TABLE IF NOT EXISTS wh_delivery (
  client bytea NOT NULL,
  entity bytea NOT NULL,
  since bigint NOT NULL,
  state smallint NOT NULL,
  reason smallint NOT NULL,
  last_success bigint NOT NULL,
  last_failure bigint NOT NULL,
  first_failure bigint NOT NULL,
  latest bigint NOT NULL,
  PRIMARY KEY (client, entity));

CREATE INDEX IF NOT EXISTS wh_delivery_latest ON wh_delivery (latest);

-- What is set, for people: without the paths and queries of URLs, and without rows that no longer
-- count. Entity is NULL for the base, origin is NULL for an override that is off. In names, bytes
-- beyond ASCII are shown as a backslash and three octal digits.
CREATE OR REPLACE VIEW wh_webhook AS
SELECT encode(w.client, 'escape') AS client, encode(w.entity, 'escape') AS entity, w.source,
  lower(substring(encode(w.url, 'escape') from '(?i)^https?://[^/?#@\\]*(?=[/?#\\]|$)') COLLATE "C") AS origin,
  to_timestamp(w.since / 1000000.0) AS since
FROM (
  SELECT id AS client, NULL::bytea AS entity, 'base' AS source, url, since FROM wh_client WHERE length(url) > 0
  UNION ALL
  SELECT o.client, o.entity, CASE WHEN length(o.url) > 0 THEN 'override' ELSE 'off' END, o.url, o.since
  FROM wh_override o JOIN wh_client c ON c.id = o.client AND c.gen = o.gen) w;

-- Last, so that the version shows only where all tables are. Those of another version keep it.
INSERT INTO wh_schema AS s (id, version) VALUES (1, 3)
ON CONFLICT (id) DO UPDATE SET version = EXCLUDED.version WHERE s.version < 1;
