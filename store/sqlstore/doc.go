// Package sqlstore keeps the webhook configuration in your SQL database, for any number of
// processes.
//
//	db, err := sql.Open("pgx", dsn) // the driver is your choice
//	db.SetMaxOpenConns(20)
//	db.SetMaxIdleConns(20)
//	st, err := sqlstore.New(db, sqlstore.PostgreSQL(), nil)
//	err = st.Migrate(ctx)
//	warnings, err := st.Check(ctx) // log them
//	go st.SweepEvery(ctx, 5*time.Minute)
//	h, err := webhookcfg.NewHandler(st, verifier, nil)
//
// # Open and migrate
//
// [Store.Migrate] creates or updates the tables and a view, and only when you call it. All your
// replicas can call it when they start: a lock in the database makes them take turns. If you
// have a migration tool, give it the files in the directory schema, or the statements of
// [Dialect.Schema]. Until the tables are complete, all calls return errors.
//
// [Store.Migrate] needs the right to create missing tables and indexes, and on MySQL and MariaDB
// to drop the view. The other calls need SELECT, INSERT, UPDATE and DELETE on the tables.
//
// [Store.Check] warns you of settings that lose changes or fail under load, and says what to
// change.
//
// # Choose a database and a driver
//
// Read the documentation of your dialect ([PostgreSQL], [MySQL] or [SQLite]) for the settings
// that it needs. The tests run these combinations, with PostgreSQL 15 and MariaDB 10.11:
//
//	database          dialect     driver               settings
//	PostgreSQL 13+    PostgreSQL  jackc/pgx            query modes cache_statement,
//	                                                   cache_describe, simple_protocol
//	                              jackc/pgx, pgxpool   stdlib.OpenDBFromPool; leave
//	                                                   SetMaxIdleConns at 0
//	                              lib/pq               deadlines, see PostgreSQL
//	PgBouncer 1.18,   PostgreSQL  jackc/pgx            default_query_exec_mode=exec
//	transaction mode              lib/pq               binary_parameters=yes
//	MariaDB 10.5+     MySQL       go-sql-driver/mysql  innodb_lock_wait_timeout=1
//	SQLite 3.37+      SQLite      modernc.org/sqlite   busy_timeout, WAL, synchronous=FULL,
//	                                                   secure_delete, _txlock=immediate
//	                              mattn/go-sqlite3     the same
//
// The minimum versions come from the manuals. MySQL 8 should work, but the tests never ran on
// it, nor on a Galera cluster or a database that only speaks PostgreSQL's protocol. PgBouncer
// 1.18 can exit when a connection breaks while it cancels a statement, so have it restarted.
//
// # Size the pool
//
// Each read in flight holds a connection, and so does each client with a change in flight.
// Set [database/sql.DB.SetMaxOpenConns] to what your server can spare for the process, and
// SetMaxIdleConns to the same number. With the default of two, a busy service keeps opening
// connections. Over a pgxpool, set only the first, to at most the pool's MaxConns: the pool keeps
// the idle connections, and your own queries need them.
//
// A busy client can't use up the pool: the store makes the changes of one client one after
// another, and they hold at most one connection. Use one Store per database handle. Reads
// don't wait for changes on the tested databases.
//
// # Read from a copy
//
// If you send many notifications, read through a [cache.Cache], as Example_sender shows. It
// polls the store for changes. On PostgreSQL and SQLite a poll is one query, whose cost grows
// only with the number of changes ([Store.Changes]). On MySQL and MariaDB it grows with the
// number of clients in the copy ([Store.Versions]). With queries of 8 ms, polls can follow 64,000
// clients there, so stay well below: [cache.Options] has the arithmetic.
//
// # Keep deliveries
//
// Give the store to [deliver.NewHealth], and all processes share how deliveries go. The record
// with the latest attempt wins, so keep your servers' clocks within a few seconds of each other.
//
// # Clean up
//
// Run [Store.SweepEvery] in a goroutine, in any number of processes. It deletes overrides
// that no longer count, clients that have had nothing set for an hour, and deliveries without
// an attempt in 90 days. Don't delete clients' rows yourself, because readers wouldn't learn
// of it.
//
// # Limit overrides
//
// The directory limit has a trigger for each database, which refuses a set when its client has
// 500 overrides, or as many as a table of yours says. It counts in the transaction of the
// change, so no race can exceed the limit. Example_limit makes it a [webhookcfg.Refusal].
//
// # Look up webhooks with SQL
//
// The view wh_webhook shows all webhooks, but never the path or query of a URL. So you can grant
// people SELECT on the view alone.
//
//	SELECT entity, source, origin, since FROM wh_webhook WHERE client = 'acme';
//	SELECT client, count(*) FROM wh_webhook WHERE origin = 'https://old.example.com' GROUP BY client;
//
// Entity is NULL for the base, the default webhook. Source is base, override or off, and origin
// is the scheme, host and port. [Dialect.Schema] has the details.
//
// # Back up
//
// Use the tools of your database, and back up all tables of one prefix together. A restored
// backup returns the configuration to the time of the backup. If you restore tables while the
// server keeps running, or replace the file of an SQLite database, restart the processes that
// have a cache.
//
// Before you put a copy in the place of the file of an SQLite database, remove the files next to
// it whose names end in -wal, -shm and -journal. After a crash, or if the file was replaced while
// the service ran, they're still there, and SQLite would apply them to the copy, which damages
// it. Leave them there if you keep the old file: its last changes can be only in them.
//
// With PostgreSQL, restore tables with their keys, indexes and triggers, which pg_restore -t leaves
// out. While a table has no primary key, [Store.Healthy] and [Store.Check] say so.
//
// # Upgrade
//
// Call [Store.Migrate] from the new version first. The section Upgrade of CHANGELOG.md has the
// order of everything else, and says what can't be undone.
//
// # Outages
//
// While the database is down, locked, full, read-only or not migrated, calls return errors and
// the handler responds with 503. The store recovers as soon as the database does. Have an alert
// call [Store.Healthy].
//
// If a process disappears from the network in the middle of a change, it leaves its client's
// row locked until the server notices. Other changes of that client fail meanwhile, and hold
// one connection of each pool. Have the server end idle transactions after a few seconds:
//
//	PostgreSQL  idle_in_transaction_session_timeout
//	MariaDB     idle_write_transaction_timeout
//	MySQL       wait_timeout
//
// That holds for all transactions of the pool, also yours: if yours idle for longer, give the store
// a pool of its own.
//
// # Failover
//
// Connect to the primary only, for instance with target_session_attrs=read-write. On MySQL and
// MariaDB, set read_only on every replica. A read from a standby or a replica then returns
// [ErrStandby], instead of an old webhook.
//
// Acknowledged changes survive a failover only with a synchronous standby. With an
// asynchronous one, you silently lose the latest changes. Stop a primary that you have
// replaced: while it accepts connections, the store can't tell it from its successor.
//
// If a connection breaks during a commit, the store finds out whether the change was made. If
// it can't, the error wraps [ErrOutcomeUnknown].
package sqlstore
