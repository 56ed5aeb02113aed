-- Version 3 of the tables of package sqlstore in MySQL and MariaDB, with the default prefix.
-- Versions 1 and 2 were never released, and the store refuses them. Times are in
-- microseconds of Unix time.

-- Erased is the number of clients whose rows were deleted.
CREATE TABLE IF NOT EXISTS wh_schema (
  id INT NOT NULL PRIMARY KEY,
  version INT NOT NULL,
  erased BIGINT NOT NULL DEFAULT 0) ENGINE=InnoDB;

-- The url and since of the base. Without a base, url is empty, and since is the time of the
-- last unset of all, 0 if there was none. Vacated is the time of a change after which the client
-- may have neither a base nor overrides, 0 if it has.
CREATE TABLE IF NOT EXISTS wh_client (
  id VARBINARY(1024) NOT NULL PRIMARY KEY,
  gen BIGINT NOT NULL,
  swept BIGINT NOT NULL,
  url BLOB NOT NULL,
  since BIGINT NOT NULL,
  mark BIGINT NOT NULL,
  vacated BIGINT NOT NULL) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS wh_override (
  client VARBINARY(1024) NOT NULL,
  gen BIGINT NOT NULL,
  entity VARBINARY(1024) NOT NULL,
  url BLOB NOT NULL,
  since BIGINT NOT NULL,
  PRIMARY KEY (client, gen, entity)) ENGINE=InnoDB;

-- The entity of a client's base is empty. State is 1 for a webhook that was stopped, reason
-- the number of a reason, and latest the later one of last_success and last_failure.
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

-- Last, so that the version shows only where all tables are. Those of another version keep it.
INSERT INTO wh_schema (id, version) VALUES (1, 3)
ON DUPLICATE KEY UPDATE version = IF(version < 1, 3, version);
