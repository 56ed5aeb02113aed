-- Limits how many entities of a client can have a URL of their own, in the tables of package
-- sqlstore in MySQL and MariaDB with the default prefix. Run it once, after the tables were
-- created, with the program mysql or mariadb. In another program, run the two statements without
-- the DELIMITER lines and the two slashes behind END. With a binary log, the server may demand the variable
-- log_bin_trust_function_creators. A set that goes beyond the limit fails with the error
-- ER_SIGNAL_EXCEPTION (1644).
--
-- No two sets can both take the last place: the store locks the client's row before it writes
-- an override, and the query here sees what was committed until then. Entities that are off
-- don't count, so an unset makes room, and is never refused. Only your Options.EntityExists
-- bounds them, and each is a row. The index has them in front of all URLs, so a set, which starts
-- at the first URL, reads no more than 500 rows, however many they are. (With url > '', the server
-- would start at the rows that are off, because the index has only the first byte.)
--
-- To give each client its own limit, read it from a table of yours: instead of DEFAULT 500 write
--   DEFAULT COALESCE((SELECT p.most FROM plan p WHERE p.client = CONVERT(NEW.client USING utf8mb4)), 500)
-- In NEW.client, the client is in bytes. Without COALESCE, a client without a row would have no limit.
--
-- If a restore brought the index back without the trigger, leave out the statement CREATE INDEX.
CREATE INDEX wh_override_url ON wh_override (client, gen, url(1));

DELIMITER //
CREATE TRIGGER wh_limit BEFORE INSERT ON wh_override FOR EACH ROW
BEGIN
  DECLARE most INT UNSIGNED DEFAULT 500;
  IF LENGTH(NEW.url) > 0 AND (SELECT COUNT(*) FROM (
    SELECT 1 FROM wh_override o FORCE INDEX (wh_override_url)
    WHERE o.client = NEW.client AND o.gen = NEW.gen AND o.url >= 0x01 AND o.entity <> NEW.entity
    LIMIT most) q) >= most THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'too_many_overrides';
  END IF;
END //
DELIMITER ;
