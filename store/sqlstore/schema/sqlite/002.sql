-- Version 2 adds the deliveries of package webhookcfg/deliver. Everything else works with
-- version 1 too.

-- The entity of a client's base is empty. State and reason are the numbers of their
-- constants, times are in Unix seconds, and latest is the later one of last_success and
-- last_failure.
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

-- Last, so that the version shows only where the table is.
UPDATE wh_schema SET version = 2 WHERE id = 1 AND version < 2;
