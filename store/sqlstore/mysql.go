package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"

	"example.com/go-webhookcfg/internal/dialect"
)

// mySQL repeats parameters instead of referring to the new row. For that, MySQL and MariaDB
// have no common syntax that neither of them deprecates.
var mySQL = dialectSpec{
	Engine:    dialect.MySQL,
	schema:    schemas,
	directory: "schema/mysql",
	lock:      lockMySQL,
	touch: `
INSERT INTO {client} (id, gen, swept, url, since, mark, vacated) VALUES (@client, {now}, {now}, '', 0, @mark, {vacated})
ON DUPLICATE KEY UPDATE mark = @mark, vacated = {vacated}`,
	put: put,
	replace: `
ON DUPLICATE KEY UPDATE url = @url, since = @since`,
	setAll: `
INSERT INTO {client} (id, gen, swept, url, since, mark, vacated) VALUES (@client, {now}, {now}, @url, @since, @mark, {vacated})
ON DUPLICATE KEY UPDATE gen = gen + 1, url = @url, since = @since, mark = @mark, vacated = {vacated}`,
	url: "@url",
	// The order of the assignments doesn't matter: a comparison has the same result with the
	// old latest and the new one.
	replaceDelivery: `
ON DUPLICATE KEY UPDATE since = IF(latest <= @latest, @since, since), state = IF(latest <= @latest, @state, state),
  reason = IF(latest <= @latest, @reason, reason), last_success = IF(latest <= @latest, @success, last_success),
  last_failure = IF(latest <= @latest, @failure, last_failure), first_failure = IF(latest <= @latest, @first, first_failure),
  latest = GREATEST(latest, @latest)`,
	expireDeliveries: `
DELETE FROM {delivery} WHERE latest < @before ORDER BY latest LIMIT @limit`,
	countErased: `
UPDATE {schema} SET erased = erased + 1 WHERE id = 1 AND NOT EXISTS (SELECT id FROM {client} WHERE id = @client)`,
	change: `0`,
	// UUID_SHORT starts with the second when the server was started.
	identity: `CONCAT(@@server_id, '-', @@hostname, '-', @@port, '-', UUID_SHORT() >> 24)`,
	// Replicas are read-only by convention. Depending on the version, this is a number or a
	// word.
	standby:  `CAST(@@global.read_only AS CHAR) NOT IN ('0', 'OFF')`,
	check:    `SELECT version, @@autocommit, {standby} FROM {schema} WHERE id = 1`,
	unfit:    errors.New("connections without autocommit: leave it on for all of them"),
	code:     mySQLCode,
	codes:    "error",
	outcomes: mySQLOutcomes,
}

// lockMySQL locks on the connection, because statements that create tables end a transaction.
func lockMySQL(ctx context.Context, conn *sql.Conn, prefix string, migrate func(session) error) error {
	const lockTimeout = 60 // seconds
	var got sql.NullInt64
	if err := conn.QueryRowContext(ctx, `SELECT GET_LOCK(?, ?)`, lockName(prefix), lockTimeout).Scan(&got); err != nil {
		return err
	}
	if got.Int64 != 1 {
		return fmt.Errorf("another migration still holds the lock after %d seconds: try again when it has ended", lockTimeout)
	}
	defer release(ctx, conn, `SELECT RELEASE_LOCK(?)`, lockName(prefix))
	return migrate(conn)
}

// MySQL Error Message Reference, "Server Error Message Reference", and MySQL Reference
// Manual, "InnoDB Error Handling"; MariaDB Documentation, "MariaDB Error Codes". A COMMIT
// checks read_only before it starts ("Server System Variables").
var mySQLOutcomes = provedOutcomes{
	"1020": outcomeConflict, // ER_CHECKREAD, of MariaDB with innodb_snapshot_isolation
	"1205": outcomeConflict, // ER_LOCK_WAIT_TIMEOUT
	"1213": outcomeConflict, // ER_LOCK_DEADLOCK, in a Galera cluster also at commit
	"1290": outcomeFailed,   // ER_OPTION_PREVENTS_STATEMENT, read_only
}

// mySQLCode returns the number of an error. The common driver has a field for it.
func mySQLCode(err error) string {
	if number, ok := integerField(err, "Number"); ok {
		return strconv.FormatInt(number, 10)
	}
	return ""
}
