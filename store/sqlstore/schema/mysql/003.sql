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

-- What is set, for people: without the paths and queries of URLs, and without rows that no longer
-- count. Entity is NULL for the base, origin is NULL for an override that is off. Columns of
-- bytes have no case, so they're converted before LOWER.
CREATE OR REPLACE VIEW wh_webhook AS
SELECT CONVERT(w.client USING utf8mb4) AS client, CONVERT(w.entity USING utf8mb4) AS entity, w.source,
  CASE WHEN (LOWER(CONVERT(w.url USING latin1)) LIKE 'https://%' OR LOWER(CONVERT(w.url USING latin1)) LIKE 'http://%') AND LOCATE('@', w.authority) = 0
    THEN LOWER(CONVERT(CONCAT(SUBSTRING_INDEX(w.url, ':', 1), '://', w.authority) USING utf8mb4)) END AS origin,
  TIMESTAMPADD(MICROSECOND, w.since, '1970-01-01 00:00:00') AS since
FROM (
  SELECT v.*, SUBSTRING_INDEX(REPLACE(REPLACE(REPLACE(SUBSTRING(v.url, LOCATE('://', v.url) + 3),
    '?', '/'), '#', '/'), CHAR(92), '/'), '/', 1) AS authority
  FROM (
    SELECT id AS client, NULL AS entity, 'base' AS source, url, since FROM wh_client WHERE LENGTH(url) > 0
    UNION ALL
    SELECT o.client, o.entity, CASE WHEN LENGTH(o.url) > 0 THEN 'override' ELSE 'off' END, o.url, o.since
    FROM wh_override o JOIN wh_client c ON c.id = o.client AND c.gen = o.gen) v) w;

-- Last, so that the version shows only where all tables are. Those of another version keep it.
INSERT INTO wh_schema (id, version) VALUES (1, 3)
ON DUPLICATE KEY UPDATE version = IF(version < 1, 3, version);
