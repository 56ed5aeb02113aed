package dialect

import (
	"context"
	"database/sql"
)

// Advice is a warning about a setting.
type Advice struct {
	// When is the condition for the warning, as a template. @pool is the limit of the pool.
	When string
	// Text says what's wrong, and what to change.
	Text string
}

// Advise returns a warning for each setting of the database, its connections or their pool that
// isn't safe, by the advice for the engine and by more. It only sees the settings of the
// connection that it gets.
func (e Engine) Advise(ctx context.Context, db *sql.DB, more ...Advice) (warnings []string, err error) {
	limit := db.Stats().MaxOpenConnections
	if limit == 0 {
		warnings = append(warnings, "the pool has no limit, so a busy moment can exhaust the server's connections: call SetMaxOpenConns and, with the same number, SetMaxIdleConns. "+
			"If the driver has a pool of its own below, as pgxpool does, call SetMaxOpenConns only: idle connections would be missing in that pool")
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return warnings, err
	}
	defer conn.Close()
	for _, a := range append(e.advices[:len(e.advices):len(e.advices)], more...) {
		s := e.Compile("SELECT CASE WHEN "+a.When+" THEN 1 ELSE 0 END", DefaultPrefix)
		var applies bool
		if err := conn.QueryRowContext(ctx, s.Text, s.Args(Values{"pool": limit})...).Scan(&applies); err != nil {
			return warnings, err
		}
		if applies {
			warnings = append(warnings, a.Text)
		}
	}
	return warnings, nil
}

var advicesPostgreSQL = []Advice{
	{
		`@pool::integer > current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer`,
		"the pool may open more connections than the server accepts: lower SetMaxOpenConns, or raise max_connections",
	},
	{
		`current_setting('fsync') = 'off' OR current_setting('full_page_writes') = 'off'`,
		"the server doesn't wait for the disk, so a crash of the machine can destroy the database: turn fsync and full_page_writes on",
	},
	{
		`current_setting('synchronous_commit') = 'off'`,
		"commits don't wait for the disk, so a crash loses acknowledged changes: turn synchronous_commit on",
	},
	{
		`current_setting('synchronous_commit') = 'local' AND current_setting('synchronous_standby_names') <> ''`,
		"commits don't wait for the synchronous standby, so a failover loses acknowledged changes: turn synchronous_commit on",
	},
	{
		`current_setting('transaction_read_only') = 'on'`,
		"transactions are read-only, so every change fails: connect to the primary, and don't set default_transaction_read_only",
	},
	{
		`current_setting('idle_in_transaction_session_timeout') = '0'`,
		"a process that disappears keeps a client's row locked: have the server end idle transactions after 5s: in a URL with options=-c%20idle_in_transaction_session_timeout%3D5s, with the unit, which psql and pg_dump understand, too, or, behind a pooler, with ALTER ROLE, and let the pooler reconnect; this ends all transactions of this pool that idle for longer, also yours: if yours do, give the store and Run a pool of their own",
	},
}

var advicesMySQL = []Advice{
	{
		`@pool > @@global.max_connections`,
		"the pool may open more connections than the server accepts: lower SetMaxOpenConns, or raise max_connections",
	},
	{
		`@@global.innodb_flush_log_at_trx_commit <> 1`,
		"commits don't wait for the disk, so a crash loses acknowledged changes: set innodb_flush_log_at_trx_commit to 1",
	},
	{
		`@@global.log_bin = 0 OR @@global.sync_binlog <> 1`,
		"without a binary log on disk, a crash can undo a change that others have read: enable log_bin, set sync_binlog to 1, and let old logs expire with binlog_expire_logs_seconds, or they fill the disk",
	},
	{
		`@@session.innodb_lock_wait_timeout > 5`,
		"abandoned changes keep sessions of the server for long: set innodb_lock_wait_timeout to 1 in the DSN; this holds for all statements of this pool, also yours: if yours wait for locks for longer, give the store and Run a pool of their own",
	},
}

var advicesSQLite = []Advice{
	{
		`(SELECT synchronous FROM pragma_synchronous) < 2`,
		"commits don't wait for the disk, so a power failure loses acknowledged changes: set the pragma synchronous to FULL in the DSN, for all connections",
	},
	{
		`(SELECT journal_mode FROM pragma_journal_mode) <> 'wal'`,
		"reads and changes wait for each other: set the pragma journal_mode to WAL",
	},
	{
		`(SELECT timeout FROM pragma_busy_timeout) = 0`,
		"calls fail at once while another process writes: set the pragma busy_timeout to 250 in the DSN, for all connections",
	},
	{
		`(SELECT secure_delete FROM pragma_secure_delete) <> 1`,
		"the URLs of an erased client stay readable in the file: set the pragma secure_delete to ON in the DSN, for all connections",
	},
}
