-- Version 2 adds the deliveries of package webhookcfg/deliver. Everything else works with
-- version 1 too.

-- The entity of a client's base is empty. State and reason are the numbers of their
-- constants, times are in Unix seconds, and latest is the later one of last_success and
-- last_failure.
CREATE TABLE IF NOT EXISTS wh_delivery (
  client VARBINARY(1024) NOT NULL,
  entity VARBINARY(1024) NOT NULL,
  since BIGINT NOT NULL,
  state SMALLINT NOT NULL,
  reason SMALLINT NOT NULL,
  last_success BIGINT NOT NULL,
  last_failure BIGINT NOT NULL,
  first_failure BIGINT NOT NULL,
  latest BIGINT NOT NULL,
  PRIMARY KEY (client, entity),
  KEY wh_delivery_latest (latest)) ENGINE=InnoDB;

-- Last, so that the version shows only where the table is.
UPDATE wh_schema SET version = 2 WHERE id = 1 AND version < 2;
