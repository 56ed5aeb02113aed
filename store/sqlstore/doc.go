// Package sqlstore keeps the webhook configuration in an SQL database that many
// processes share: PostgreSQL, MySQL, MariaDB, SQLite, and what speaks the protocol
// of PostgreSQL. It imports no driver; the host opens a [database/sql.DB] with the
// one of its choice.
//
//	db, err := sql.Open("pgx", dsn)
//	st, err := sqlstore.New(db, sqlstore.PostgreSQL(), nil)
//	err = st.Migrate(ctx)
//	h, err := webhookcfg.NewHandler(st, verifier, nil)
//
// # How it works
//
// Each client has a row with its base and a generation; each override has a row
// whose key has the generation in it. A change of all entities adds one to the
// generation, and so drops every override by touching a single row: what it leaves
// behind is void at that moment, and is removed by [Store.Sweep] some other time.
// A change of one entity locks the row of the client first, so that it goes into
// the generation that is in effect. Resolve and List are one query each, and
// linearizable wherever the database's single statements are. Names and URLs are
// kept as bytes: no encoding, collation or trailing space makes two of them equal.
//
// A change is a transaction that locks the row of its client first. It is tried
// again, up to a hundred times, after errors that prove a rollback: deadlocks,
// serialization failures, a busy SQLite. After any other error it is not, since
// others may have changed the same meanwhile. The handler answers 503 to all of
// these, and its client, who knows what it wants, sets it again.
//
// A change that was given up before its commit was sent is never made, and one whose
// commit is on its way keeps the lock: however late that arrives, it cannot undo a
// later change that was acknowledged. Where a commit was not answered, as when the
// connection broke or the context ended at that moment, the store waits for the end
// of the transaction on another connection, for half a second at most, and succeeds
// if its change turns out to be the last one of the client. Otherwise the error
// wraps [ErrOutcomeUnknown]. So a change may outlast its context by half a second;
// by another half where a driver does not give up its connection at the end of a
// context.
//
// # What changed
//
// Whoever keeps copies asks the database, at intervals, what changed. With every
// dialect the store is a [webhookcfg.Versioner]: it tells by number whether a client
// is as it was, with a cost that grows with the clients asked for. With PostgreSQL
// and SQLite, [Store.WithFeed] makes a [webhookcfg.Feed] of it, whose cost grows with
// the changes alone; give the result to whoever keeps the copies. MySQL and generic
// PostgreSQL number nothing in the order of commits, so that a cursor would miss
// changes. There is no [webhookcfg.Waker]: PostgreSQL's NOTIFY takes a lock that all
// writers share, is silent on a connection that froze, and does not pass a pooler.
//
// # PostgreSQL
//
// Version 13 or later, at any isolation level; the default, READ COMMITTED, needs
// the fewest retries. Connect to the primary alone, such as with
// target_session_attrs=read-write: on a replica a change that was answered may not
// be there yet. What was answered survives a failover only where a standby is
// synchronous; with an asynchronous one the last changes are lost without a word.
// Leave synchronous_commit and fsync on. A change takes three round trips, and an
// unset of one entity five. Through a pooler in transaction mode everything works,
// Migrate too, as far as the driver itself does there.
//
// [GenericPostgreSQL] keeps to statements that its relatives have in common, and
// tries again where they fail to serialize. It is tested on PostgreSQL itself, at
// SERIALIZABLE. Where Migrate finds no advisory locks it goes without: let one
// process migrate then.
//
// # MySQL and MariaDB
//
// MySQL 8 or MariaDB 10.5, or later, with InnoDB. A change takes three to five round
// trips, or more where the driver prepares its statements. Leave
// innodb_flush_log_at_trx_commit at 1, and keep the binary log, with sync_binlog at
// 1, which is not how MariaDB begins: without it a crash can take back a change that
// was not acknowledged yet, but that somebody had seen. As with PostgreSQL, connect
// to the primary alone, and count on losing the last changes in a failover to an
// asynchronous replica. In a Galera cluster let one node be the endpoint of all
// writes and reads; with several, reads come late, and clause 14 of
// [webhookcfg.Store] is broken, unless wsrep_sync_wait is 7.
//
// # SQLite
//
// Version 3.37 or later, for the processes of one machine, on a local disk. The
// connections need these settings, here in the words of modernc.org/sqlite:
//
//	file:/var/lib/app/webhooks.db
//		?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)
//
// The store begins its transactions as immediate ones by itself. With WAL lookups go
// on beside a change. Below FULL, changes that were answered can be lost when the
// power fails. The busy_timeout is how long SQLite waits for another process before
// the store takes over the waiting; that long a call can outlast its context.
// Changes of one [Store] wait for each other in the store, so use one for the
// process.
//
// # Operating it
//
// Migrate needs the right to create tables, and may be run by hand from
// [Dialect.Schema] instead. The store itself needs SELECT, INSERT and UPDATE, and
// DELETE on the table of overrides. Rows of clients are never deleted, and must not
// be: a generation that begins again at 0 brings void overrides back.
//
// Call [Store.Sweep] every few minutes, from any number of processes. A row takes
// the bytes of its names and its URL, and about a hundred for the engine.
//
// Back up with the tools of the database; all tables of one prefix belong together.
// A restored backup takes the configuration back to its time. Versions and, after a
// restart of PostgreSQL, cursors of before are known for foreign then; where a
// table was filled anew under a server that went on, or the file of an SQLite
// database was replaced, start those anew who hold cursors.
//
// A process that vanishes from the network in the middle of a change leaves the row
// of one client locked until the server notices, and other changes of that client
// fail so long. Have the server end idle transactions after some seconds: with
// idle_in_transaction_session_timeout on PostgreSQL, idle_write_transaction_timeout
// on MariaDB, and wait_timeout on MySQL.
//
// A database that is down, read-only, full or not migrated gives errors, and is
// used again when it can be. Set [database/sql.DB.SetMaxOpenConns], since each
// call in flight holds one connection, and SetMaxIdleConns to the same: with two,
// the default, a busy service opens connections all the time. A driver must return
// [database/sql/driver.ErrBadConn] only where nothing was sent, as its documentation
// demands: such a statement is sent again.
package sqlstore
