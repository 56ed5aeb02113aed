-- Version 2 adds the deliveries of package webhookcfg/deliver. Everything else works with
-- version 1 too.

-- The entity of a client's base is empty. State and reason are the numbers of their
-- constants, times are in Unix seconds, and latest is the later one of last_success and
-- last_failure.
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

-- Last, so that the version shows only where the table is.
UPDATE wh_schema SET version = 2 WHERE id = 1 AND version < 2;
