-- Limits how many entities of a client can have a URL of their own, in the tables of package
-- sqlstore in MySQL and MariaDB with the default prefix. Run it once, after the tables were
-- created. It's one statement, so the program mysql needs another DELIMITER. With a binary log,
-- the server may demand the variable log_bin_trust_function_creators. A set that goes beyond
-- the limit fails with the error ER_SIGNAL_EXCEPTION (1644).
--
-- No two sets can both take the last place: the store locks the client's row before it writes
-- an override, and the query here sees what was committed until then. Entities that are off
-- don't count, so an unset makes room, and is never refused.
--
-- To give each client its own limit, read it from a table of yours instead of 500. In
-- NEW.client, the client is in bytes: CONVERT(NEW.client USING utf8mb4).
CREATE TRIGGER wh_limit BEFORE INSERT ON wh_override FOR EACH ROW
BEGIN
  IF LENGTH(NEW.url) > 0 AND (SELECT COUNT(*) FROM (
    SELECT 1 FROM wh_override o
    WHERE o.client = NEW.client AND o.gen = NEW.gen AND o.entity <> NEW.entity AND LENGTH(o.url) > 0
    LIMIT 500) q) >= 500 THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'too_many_overrides';
  END IF;
END
