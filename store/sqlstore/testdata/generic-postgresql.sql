CREATE TABLE IF NOT EXISTS wh_schema (
  id integer PRIMARY KEY,
  version integer NOT NULL);

CREATE TABLE IF NOT EXISTS wh_client (
  id bytea PRIMARY KEY,
  gen bigint NOT NULL,
  swept bigint NOT NULL,
  url bytea NOT NULL,
  since bigint NOT NULL,
  mark bigint NOT NULL);

CREATE TABLE IF NOT EXISTS wh_override (
  client bytea NOT NULL,
  gen bigint NOT NULL,
  entity bytea NOT NULL,
  url bytea NOT NULL,
  since bigint NOT NULL,
  PRIMARY KEY (client, gen, entity));

INSERT INTO wh_schema (id, version) VALUES (1, 1) ON CONFLICT (id) DO NOTHING;
