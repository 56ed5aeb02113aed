-- Table of waiting and ended notifications for MySQL and MariaDB. The columns are explained in postgresql.sql.
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
