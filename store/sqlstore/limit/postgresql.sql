-- Limits how many entities of a client can have a URL of their own, in the tables of package
-- sqlstore in PostgreSQL with the default prefix. Run it once, after the tables were created.
-- A set that goes beyond the limit fails with the SQLSTATE WH001.
--
-- No two sets can both take the last place: the store locks the client's row before it writes
-- an override, and the query here sees what was committed until then. Entities that are off
-- don't count, so an unset makes room, and is never refused. Only your Options.EntityExists
-- bounds them, and each is a row. The index leaves them out, so a set reads no more than 500
-- rows, however many they are.
--
-- The function keeps the search_path of the session that creates it, since pg_restore has an empty
-- one while it fills the tables.
--
-- To give each client its own limit, read it from a table of yours: instead of 500 write, in both places,
--   COALESCE((SELECT most FROM plan WHERE client = convert_from(NEW.client, 'UTF8')), 500)
-- In NEW.client, the client is in bytes. Without COALESCE, a client without a row would have no limit.
--
-- If a restore brought the index back without the trigger, leave out the statement CREATE INDEX.
CREATE INDEX wh_override_url ON wh_override (client, gen, entity) WHERE length(url) > 0;

CREATE OR REPLACE FUNCTION wh_limit() RETURNS trigger LANGUAGE plpgsql SET search_path FROM CURRENT AS $$
BEGIN
  IF (SELECT COUNT(*) FROM (
    SELECT 1 FROM wh_override o
    WHERE o.client = NEW.client AND o.gen = NEW.gen AND o.entity <> NEW.entity AND length(o.url) > 0
    ORDER BY o.entity LIMIT 500) q) >= 500 THEN
    RAISE EXCEPTION 'too_many_overrides' USING ERRCODE = 'WH001';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER wh_limit BEFORE INSERT ON wh_override
FOR EACH ROW WHEN (length(NEW.url) > 0) EXECUTE FUNCTION wh_limit();
