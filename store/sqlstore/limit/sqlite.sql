-- Limits how many entities of a client can have a URL of their own, in the tables of package
-- sqlstore in SQLite with the default prefix. Run it once, after the tables were created. A set
-- that goes beyond the limit fails with the result code SQLITE_CONSTRAINT_TRIGGER (1811).
--
-- No two sets can both take the last place, since SQLite has one writer at a time. Entities that
-- are off don't count, so an unset makes room, and is never refused. Only your
-- Options.EntityExists bounds them, and each is a row. The index leaves them out, so a set reads
-- no more than 500 rows, however many they are.
--
-- To give each client its own limit, read it from a table of yours: instead of 500 write, in both places,
--   COALESCE((SELECT most FROM plan WHERE client = CAST(NEW.client AS TEXT)), 500)
-- In NEW.client, the client is in bytes. Without COALESCE, a client without a row could set nothing.
--
-- If a restore brought the index back without the trigger, leave out the statement CREATE INDEX.
CREATE INDEX wh_override_url ON wh_override (client, gen, entity) WHERE length(url) > 0;

CREATE TRIGGER wh_limit BEFORE INSERT ON wh_override
WHEN length(NEW.url) > 0 AND (SELECT COUNT(*) FROM (
  SELECT 1 FROM wh_override o INDEXED BY wh_override_url
  WHERE o.client = NEW.client AND o.gen = NEW.gen AND o.entity <> NEW.entity AND length(o.url) > 0
  ORDER BY o.entity LIMIT 500) q) >= 500
BEGIN
  SELECT RAISE(ABORT, 'too_many_overrides');
END;
