-- Version 1 of the tables of package sqlstore in MySQL and MariaDB, with the default prefix.

CREATE TABLE IF NOT EXISTS wh_schema (
  id INT NOT NULL PRIMARY KEY,
  version INT NOT NULL) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS wh_client (
  id VARBINARY(1024) NOT NULL PRIMARY KEY,
  gen BIGINT NOT NULL,
  swept BIGINT NOT NULL,
  url BLOB NOT NULL,
  since BIGINT NOT NULL,
  mark BIGINT NOT NULL) ENGINE=InnoDB;

CREATE TABLE IF NOT EXISTS wh_override (
  client VARBINARY(1024) NOT NULL,
  gen BIGINT NOT NULL,
  entity VARBINARY(1024) NOT NULL,
  url BLOB NOT NULL,
  since BIGINT NOT NULL,
  PRIMARY KEY (client, gen, entity)) ENGINE=InnoDB;

-- Last, so that the version shows only where all tables are.
INSERT INTO wh_schema (id, version) VALUES (1, 1)
ON DUPLICATE KEY UPDATE version = GREATEST(version, 1);
