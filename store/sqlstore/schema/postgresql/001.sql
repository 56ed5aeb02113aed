-- Version 1 of the tables of package sqlstore in PostgreSQL, with the default prefix.

CREATE TABLE IF NOT EXISTS wh_schema (
  id integer PRIMARY KEY,
  version integer NOT NULL);

CREATE TABLE IF NOT EXISTS wh_client (
  id bytea PRIMARY KEY,
  gen bigint NOT NULL,
  swept bigint NOT NULL,
  url bytea NOT NULL,
  since bigint NOT NULL,
  mark bigint NOT NULL,
  chg xid8 NOT NULL);

CREATE INDEX IF NOT EXISTS wh_client_chg ON wh_client (chg);

CREATE TABLE IF NOT EXISTS wh_override (
  client bytea NOT NULL,
  gen bigint NOT NULL,
  entity bytea NOT NULL,
  url bytea NOT NULL,
  since bigint NOT NULL,
  PRIMARY KEY (client, gen, entity));

-- Last, so that the version shows only where all tables are.
INSERT INTO wh_schema AS s (id, version) VALUES (1, 1)
ON CONFLICT (id) DO UPDATE SET version = EXCLUDED.version WHERE s.version < EXCLUDED.version;
