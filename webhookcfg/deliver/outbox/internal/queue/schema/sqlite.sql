-- Table of waiting and ended notifications for SQLite. The columns are explained in postgresql.sql.
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
