-- Tables of package outbox for SQLite. The columns are explained in postgresql.sql.
CREATE TABLE IF NOT EXISTS wh_outbox_schema (id INTEGER PRIMARY KEY, version INTEGER NOT NULL, dialect TEXT NOT NULL);

CREATE TABLE IF NOT EXISTS wh_outbox_message (
  seq INTEGER PRIMARY KEY AUTOINCREMENT,
  client BLOB NOT NULL,
  entity BLOB NOT NULL,
  id TEXT NOT NULL,
  state INTEGER NOT NULL DEFAULT 0,
  grp INTEGER NOT NULL DEFAULT 0,
  due INTEGER NOT NULL DEFAULT 0,
  enqueued INTEGER NOT NULL,
  resent INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  status INTEGER NOT NULL DEFAULT 0,
  reason TEXT NOT NULL DEFAULT '',
  history TEXT NOT NULL DEFAULT '',
  content_type TEXT NOT NULL,
  body BLOB NOT NULL,
  UNIQUE (client, id)
);

CREATE INDEX IF NOT EXISTS wh_outbox_message_group ON wh_outbox_message (state, client, grp, due, seq);
CREATE INDEX IF NOT EXISTS wh_outbox_message_newest ON wh_outbox_message (client, seq);
CREATE INDEX IF NOT EXISTS wh_outbox_message_entity ON wh_outbox_message (client, entity, state, seq);

CREATE TABLE IF NOT EXISTS wh_outbox_line (
  client BLOB PRIMARY KEY,
  owner INTEGER NOT NULL,
  due INTEGER NOT NULL,
  shut INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS wh_outbox_line_due ON wh_outbox_line (owner, due);

CREATE TABLE IF NOT EXISTS wh_outbox_pause (
  client BLOB NOT NULL,
  entity BLOB NOT NULL,
  setting INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  ends INTEGER NOT NULL,
  reason TEXT NOT NULL,
  saved INTEGER NOT NULL,
  state TEXT NOT NULL,
  PRIMARY KEY (client, entity)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS wh_outbox_mark (client BLOB NOT NULL, entity BLOB NOT NULL, n INTEGER NOT NULL, PRIMARY KEY (client, entity)) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS wh_outbox_process (id INTEGER PRIMARY KEY, beat INTEGER NOT NULL, until INTEGER NOT NULL, settings TEXT NOT NULL);

CREATE TABLE IF NOT EXISTS wh_outbox_again (
  client BLOB PRIMARY KEY,
  entity BLOB NOT NULL,
  since INTEGER NOT NULL,
  started INTEGER NOT NULL,
  ended INTEGER NOT NULL,
  steps INTEGER NOT NULL,
  part INTEGER NOT NULL,
  grp INTEGER NOT NULL,
  due INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  sent INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS wh_outbox_again_ended ON wh_outbox_again (ended, client);

INSERT INTO wh_outbox_schema (id, version, dialect) VALUES (1, 2, 'SQLite') ON CONFLICT (id) DO NOTHING;
