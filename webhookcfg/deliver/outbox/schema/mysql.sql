-- Tables of package outbox for MySQL and MariaDB. The columns are explained in postgresql.sql.
CREATE TABLE IF NOT EXISTS wh_outbox_schema (id integer PRIMARY KEY, version integer NOT NULL, dialect varchar(16) NOT NULL) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS wh_outbox_message (
  seq bigint AUTO_INCREMENT PRIMARY KEY,
  client varbinary(1024) NOT NULL,
  entity varbinary(1024) NOT NULL,
  id varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  state tinyint NOT NULL DEFAULT 0,
  grp bigint NOT NULL DEFAULT 0,
  due bigint NOT NULL DEFAULT 0,
  enqueued bigint NOT NULL,
  resent bigint NOT NULL DEFAULT 0,
  attempts integer NOT NULL DEFAULT 0,
  status integer NOT NULL DEFAULT 0,
  reason varchar(64) CHARACTER SET ascii NOT NULL DEFAULT '',
  history varchar(480) CHARACTER SET ascii NOT NULL DEFAULT '',
  content_type varchar(256) CHARACTER SET ascii NOT NULL,
  body longblob NOT NULL,
  UNIQUE (client, id),
  INDEX wh_outbox_message_group (state, client, grp, due, seq),
  INDEX wh_outbox_message_newest (client, seq),
  INDEX wh_outbox_message_entity (client, entity, state, seq)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS wh_outbox_line (
  client varbinary(1024) PRIMARY KEY,
  owner bigint NOT NULL,
  due bigint NOT NULL,
  shut tinyint NOT NULL DEFAULT 0,
  INDEX wh_outbox_line_due (owner, due)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS wh_outbox_pause (
  client varbinary(1024) NOT NULL,
  entity varbinary(1024) NOT NULL,
  setting bigint NOT NULL,
  failures integer NOT NULL,
  ends bigint NOT NULL,
  reason varchar(64) CHARACTER SET ascii NOT NULL,
  saved bigint NOT NULL,
  state text CHARACTER SET ascii NOT NULL,
  PRIMARY KEY (client, entity)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS wh_outbox_mark (client varbinary(1024) NOT NULL, entity varbinary(1024) NOT NULL, n bigint NOT NULL, PRIMARY KEY (client, entity)) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS wh_outbox_process (id bigint PRIMARY KEY, beat bigint NOT NULL, until bigint NOT NULL, settings text CHARACTER SET ascii NOT NULL) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS wh_outbox_again (
  client varbinary(1024) PRIMARY KEY,
  entity varbinary(1024) NOT NULL,
  since bigint NOT NULL,
  started bigint NOT NULL,
  ended bigint NOT NULL,
  steps bigint NOT NULL,
  part tinyint NOT NULL,
  grp bigint NOT NULL,
  due bigint NOT NULL,
  seq bigint NOT NULL,
  sent bigint NOT NULL,
  INDEX wh_outbox_again_ended (ended, client)
) ENGINE = InnoDB;

INSERT IGNORE INTO wh_outbox_schema (id, version, dialect) VALUES (1, 2, 'MySQL');
