// Package sqlstore keeps the webhook configuration in an SQL database shared by any
// number of processes: PostgreSQL, MySQL, MariaDB or SQLite. It imports no driver; the
// host opens a [database/sql.DB] with one of its choice.
//
//	db, err := sql.Open("pgx", dsn)
//	st, err := sqlstore.New(db, sqlstore.PostgreSQL(), nil)
//	err = st.Migrate(ctx)
//	warnings, err := st.Check(ctx) // settings that lose changes or fail under load
//	h, err := webhookcfg.NewHandler(st, verifier, nil)
//
// The tests of this repository run these combinations:
//
//	database          dialect     driver                   settings
//	PostgreSQL        PostgreSQL  jackc/pgx                query modes cache_statement,
//	                                                       cache_describe, simple_protocol
//	PostgreSQL        PostgreSQL  jackc/pgx, pgxpool       stdlib.OpenDBFromPool; leave
//	                                                       SetMaxIdleConns at 0
//	PostgreSQL        PostgreSQL  lib/pq                   deadlines, see below
//	PgBouncer 1.18,   PostgreSQL  jackc/pgx                query mode exec
//	transaction mode  PostgreSQL  lib/pq                   binary_parameters=yes
//	MariaDB           MySQL       go-sql-driver/mysql
//	SQLite            SQLite      modernc.org/sqlite       see section SQLite
//	SQLite            SQLite      mattn/go-sqlite3         _busy_timeout=250,
//	                                                       _journal_mode=WAL,
//	                                                       _synchronous=FULL
//
// The servers were PostgreSQL 15 and MariaDB 10.11; the oldest versions named below are
// taken from their manuals. With mattn/go-sqlite3 the tests set _synchronous=OFF, since nothing crashes.
// The tests never ran on MySQL itself, a Galera cluster, or a database that only speaks the
// protocol of PostgreSQL.
//
// lib/pq waits for the response of a silent server, or of a silent network, whatever the
// context. Give its Connector a Dialer whose connections set a deadline before each Read
// and Write, longer than a change may wait for a lock: a call then outlasts its context by
// a few of these times at most. The other network drivers close the connection when the
// context ends.
//
// # Data model
//
// Each client has a row that holds its base and a generation number; each override
// has a row whose key includes the generation. A change of all entities increments
// the generation, and thereby drops every override while touching a single row. The
// obsolete rows have no effect and are deleted later by [Store.SweepEvery]. A change of one
// entity locks the row of the client first, so that it applies to the current
// generation. Resolve and List are one query each, and are linearizable wherever
// single statements of the database are. Names and URLs are stored as bytes: no
// encoding, collation or trailing space makes two of them equal.
//
// Deliveries have a table of their own, with a row for each base and each override that
// [Store.SaveDelivery] was called for. The one with the latest attempt remains, so keep the clocks
// of your servers within a few seconds of each other. A save is a single statement without a
// transaction around it, which no process can leave open, and locks no row that a change needs.
// (In SQLite it waits for the one writer, as a change does.) Changes leave the table alone: a
// delivery has the time of the webhook that it belongs to, which its reader compares.
//
// # Transactions and errors
//
// A change is a transaction that locks the row of its client first. It is retried, up
// to a hundred times, after errors that prove a rollback: deadlocks, serialization
// failures, a busy SQLite database. It is not retried after any other error, because
// another process may have changed the same entry in the meantime. The handler
// responds to these errors with 503, and leaves the retry to its client.
//
// A change abandoned before its commit was sent is never applied. A change whose
// commit is in flight holds the lock: however late the commit arrives, it cannot undo
// a later acknowledged change. If a commit is not acknowledged, because the connection
// broke or the context ended at that moment, the store waits for the end of the
// transaction on another connection, for at most half a second, and succeeds if its
// change turns out to be the latest of the client. Otherwise the error wraps
// [ErrOutcomeUnknown]. A change may therefore outlast its context by half a second,
// and by another half if the driver does not abandon its connection when a context
// ends.
//
// These statements are tested on SQLite, and on PostgreSQL and MariaDB servers: histories
// of several replicas are checked for linearizability while servers are killed and frozen,
// while a synchronous standby of PostgreSQL replaces its primary, and while connections are
// cut after each request and each response.
//
// # Fairness
//
// A busy client can't use up your connection pool: the store makes the changes of one client
// one after another, in the order of the calls, and they hold at most one connection. Reads
// don't wait for changes on the tested databases. Use one Store per database handle. (With
// MySQL, changes that were abandoned may keep sessions of the server, see section MySQL and
// MariaDB.)
//
// # Change detection
//
// A [cache.Cache] polls the database for changes. With PostgreSQL and SQLite the store is a
// [cache.Feed], whose cost grows with the number of changes alone. MySQL numbers nothing
// in commit order, so a cursor would miss changes; there, [Store.Changes] is unsupported,
// and the cache uses the store as a [cache.Versioner], at a cost that grows with the number
// of its clients: plan for at most 30,000 in a copy. A transaction that stays open causes no change to be reported twice, however
// long it lasts.
//
// A cursor and a version include the identity of the server, of which the time of its start
// is a part. So a copy drops everything after a restart, a restored backup or a failover, and
// never keeps a webhook whose change was lost with it. (On MySQL and MariaDB that time has a
// resolution of one second.)
//
// The store is not a [cache.Notifier]: PostgreSQL's NOTIFY takes a lock that all writers
// share, is silent on a frozen connection, and does not work through a connection pooler.
//
// # PostgreSQL
//
// PostgreSQL requires version 13 or later and works at any isolation level; the
// default, READ COMMITTED, needs the fewest retries. Leave synchronous_commit and fsync
// on. A change takes three round trips, an unset of one entity five. Everything, including
// Migrate, works through a pooler in transaction mode if the driver prepares no statement there:
// behind PgBouncer, add default_query_exec_mode=exec to the DSN of pgx, and binary_parameters=yes
// to the DSN of lib/pq.
//
// Connect to the primary only, for instance with target_session_attrs=read-write. A hot
// standby may lack acknowledged changes: the error of each read from one wraps
// [ErrStandby], unless [Options.StandbyLag] admits it. Stop a primary that was replaced:
// while it accepts connections, it does not differ from its successor. A server states whether
// it is a standby, and how far it lags, after it took the snapshot of a read: one in flight
// during a promotion may lack the latest changes, and one that takes long is older by as much.
//
// Acknowledged changes survive a failover only with a synchronous standby; with an
// asynchronous one the latest are silently lost. A change whose context ended while the
// primary waited for its standby is not acknowledged, but may be visible until it is lost.
//
// # MySQL and MariaDB
//
// MySQL requires version 8, MariaDB 10.5, or later, with InnoDB. A change takes three
// to five round trips, and more if the driver prepares its statements. Connections need
// autocommit: without it reads never see later changes, and every call fails. That is checked
// on one connection, so let all of them have the setting, and leave it alone.
//
// Set innodb_lock_wait_timeout to 1 second, for go-sql-driver/mysql in the DSN:
//
//	user:password@tcp(db.example.com)/webhooks?innodb_lock_wait_timeout=1
//
// When the context of a change ends, that driver closes its connection, but the server
// notices only after the statement: a session that waits for a locked row counts towards
// max_connections for as long as this setting permits, 50 seconds by default. With many
// abandoned changes of one client these are hundreds. Changes that still wait are retried.
//
// Leave innodb_flush_log_at_trx_commit at 1 and enable the binary log, with sync_binlog at
// 1, which is not MariaDB's default: without it a crash can undo a change that was not yet
// acknowledged but already visible to readers. Connect to the primary only, and set
// read_only on every replica, as is usual: the error of each read from a server with that
// setting wraps [ErrStandby]. Expect a failover to an asynchronous replica to lose the
// latest changes. In a Galera cluster, direct all writes and reads to one node: with
// several, reads lag, which violates clause 14 of [webhookcfg.Store] unless
// wsrep_sync_wait is 7.
//
// # SQLite
//
// SQLite requires version 3.37 or later, and serves the processes of one machine from
// a local disk. The connections need these settings, here in the syntax of
// modernc.org/sqlite:
//
//	file:/var/lib/app/webhooks.db
//		?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)
//
// The store starts every transaction as an immediate one. With WAL, reads proceed
// concurrently with a change. With synchronous below FULL, a power failure can lose
// acknowledged changes. The busy_timeout is how long SQLite waits for another process
// before the store retries; a call can outlast its context by as much. All changes made
// through one [Store] queue within it, at most one of each client at a time, so use one
// per process.
//
// # Support by SQL
//
// The view wh_webhook, with your prefix, shows what is set. Its columns are client, entity (NULL for
// the base), source (base, override or off), origin (scheme, host and port, NULL for off) and
// since, in UTC unless the column has a time zone. It has no path and no query of a URL, and
// no row that a set-all has dropped, so you can grant people SELECT on the view alone:
//
//	SELECT entity, source, origin, since FROM wh_webhook WHERE client = 'acme';
//	SELECT client, count(*) FROM wh_webhook WHERE origin = 'https://old.example.com' GROUP BY client;
//
// On PostgreSQL, bytes of names beyond ASCII appear as a backslash and three octal digits. A URL
// with a user name has no origin. Each query reads the tables.
//
// # Operation
//
// Migrate creates and updates the tables and a view, under a lock, when the host calls it and never by
// itself. It needs the right to create them where they are missing, and on MySQL and MariaDB to drop the view. Alternatively, a
// separate tool runs the files in the directory schema, or the statements of
// [Dialect.Schema]. Until the tables are complete and of the expected version and dialect,
// calls return errors; the first that finds them so ends the checks, so that later ones
// cost nothing. A process does not notice that a later version migrates its tables while it
// runs; the tables stay usable for the version before.
//
// The tables have version 3 of the schema, in the file 003.sql. Versions 1 and 2 were never
// released and kept times in whole seconds: the store refuses such tables. Drop them, or choose
// another [Options.Prefix], and call Migrate.
//
// The store itself needs SELECT, INSERT, UPDATE and DELETE on its tables. Leave the rows of clients
// to [Store.Sweep]: if you delete one yourself, readers don't learn of it.
//
// Run [Store.SweepEvery] in a goroutine of any number of processes: it deletes obsolete rows
// in small batches, deliveries without an attempt in the last 90 days, and clients that have had
// nothing set for an hour. If one of the deliveries was
// a stop, the next message is sent again, and the next 410 of the receiver stops what follows.
// A row takes the bytes of its names and its URL, and about a hundred for the engine.
//
// Back up with the tools of the database, all tables of one prefix together. Restoring
// a backup returns the configuration to the time of the backup. If a table was reloaded
// while its server kept running, or the file of an SQLite database was replaced, restart
// the processes that have a [cache.Cache].
//
// A process that disappears from the network in the middle of a change leaves the row
// of one client locked until the server notices; meanwhile, other changes of that
// client fail, and hold one connection of each pool. Have the server end idle
// transactions after some seconds, with idle_in_transaction_session_timeout on
// PostgreSQL, idle_write_transaction_timeout on MariaDB, and wait_timeout on MySQL.
//
// While the database is down, locked, full, read-only or not migrated, calls return
// errors, to which the handler responds with 503; the store recovers as soon as the
// database does. [Store.Healthy] tells an alert about it, since a read from a read-only database succeeds. Set [database/sql.DB.SetMaxOpenConns], since each read, and a change of
// each client, holds one connection while in flight, and SetMaxIdleConns to the same
// number: with the default of two, a busy service opens connections all the time. A
// driver must return [database/sql/driver.ErrBadConn] only if nothing was sent, as its
// documentation demands, because the statement is then sent again.
package sqlstore
