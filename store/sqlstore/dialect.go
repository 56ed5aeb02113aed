package sqlstore

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"example.com/go-webhookcfg/internal/dialect"
)

// Dialect is a kind of database: [PostgreSQL], [MySQL] or [SQLite]. The zero value is
// invalid.
type Dialect struct{ spec *dialectSpec }

// PostgreSQL is the dialect of PostgreSQL 13 or later, and of databases built from it. It
// supports a [cache.Feed].
//
// Leave synchronous_commit and fsync on. Any isolation level works. The default, READ
// COMMITTED, needs the fewest retries. A change takes three round trips, and an unset of one
// entity takes five.
//
// Behind a pooler in transaction mode, tell the driver not to prepare statements. With pgx,
// add default_query_exec_mode=exec to the DSN. With lib/pq, add binary_parameters=yes. Then
// everything works there, including Migrate.
//
// lib/pq can wait forever for a silent server or network, even after the context has ended.
// Give its Connector a Dialer whose connections set a deadline before each Read and Write,
// longer than a change may wait for a lock. A call then outlasts its context by at most a few
// of these deadlines. The other network drivers close the connection when the context ends.
//
// With a synchronous standby, a change isn't acknowledged if its context ends while the
// primary waits for the standby. Readers may see the change all the same, and a failover can
// lose it.
func PostgreSQL() Dialect { return Dialect{&postgreSQL} }

// MySQL is the dialect of MySQL 8 or later and of MariaDB 10.5 or later, with InnoDB. The
// store isn't a [cache.Feed] there, but a [cache.Versioner].
//
// Set innodb_lock_wait_timeout to 1 second. With go-sql-driver/mysql you can do that in the
// DSN:
//
//	user:password@tcp(db.example.com)/webhooks?innodb_lock_wait_timeout=1
//
// That driver closes its connection when the context of a change ends, but the server only
// notices after the statement. Until then, a session that waits for a locked row counts
// towards max_connections, for 50 seconds by default. If many changes of one client are
// abandoned, that can be hundreds of sessions. The store retries changes that run into the
// timeout. It holds for all statements of the pool, also yours: if yours wait for locks for longer,
// give the store a pool of its own.
//
// Leave autocommit on for all connections. Without it, reads never see later changes. The
// store checks that on one connection, and fails every call if it's off.
//
// Leave innodb_flush_log_at_trx_commit at 1, or a crash can undo acknowledged changes. Enable
// the binary log too, and set sync_binlog to 1, which isn't MariaDB's default. Without that, a
// crash can undo a change that wasn't acknowledged yet, but that readers have already seen.
// MariaDB keeps all binary logs until the disk is full, unless you set binlog_expire_logs_seconds,
// or expire_logs_days before MariaDB 10.6.
//
// In a Galera cluster, direct all reads and writes to one node. With several, reads lag,
// which violates clause 14 of [webhookcfg.Store], unless you set wsrep_sync_wait to 7.
//
// A change takes three to five round trips, and more if the driver prepares its statements.
func MySQL() Dialect { return Dialect{&mySQL} }

// SQLite is the dialect of SQLite 3.37 or later. It supports a [cache.Feed]. It's for the
// processes of one machine, with the file on a local disk.
//
// The connections need these settings. With modernc.org/sqlite:
//
//	file:/var/lib/app/webhooks.db
//		?_pragma=busy_timeout(250)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)
//		&_pragma=secure_delete(ON)&_txlock=immediate
//
// That's a URI: write a # in the path as %23, a ? as %3F and a % as %25, or SQLite opens another
// file, without these settings. [net/url.URL] writes it for you.
//
// With mattn/go-sqlite3 (the tests with it set _synchronous=OFF, since nothing crashes there):
//
//	_busy_timeout=250, _journal_mode=WAL, _synchronous=FULL, _secure_delete=on,
//	_txlock=immediate
//
// With WAL, reads don't wait for a change. With synchronous below FULL, you can lose
// acknowledged changes in a power failure. The busy_timeout is how long SQLite waits for
// another process before the store tries again. A call can outlast its context by that time.
// With _txlock=immediate, your own transactions wait for their turn when they begin, as the store's
// do. Without it, one that reads before it writes fails with SQLITE_BUSY if another has written in
// between, and no busy_timeout helps. With another driver, begin yours with BEGIN IMMEDIATE.
// Without secure_delete, the URLs of an erased client stay readable in the file until SQLite
// reuses their space, which may be never.
//
// SQLite creates the file with the mode 0644 less the umask, and everybody who can read it
// can read all URLs. So create it yourself, empty and with the mode 0600, before you open the
// database. SQLite gives its -wal and -shm files the same mode.
//
// Don't move, remove or replace the file while a process has it open: that process goes on with
// the old one without an error, so what it changes is missing from the new one, or gone when it
// ends, and [Store.Healthy] doesn't notice.
//
// If you copy many webhooks into a new database, you can set synchronous to NORMAL for that
// time. Changes then don't each wait for the disk. A PRAGMA wal_checkpoint(TRUNCATE) that
// returns 0 first makes all of them durable.
//
// SQLite writes one change at a time. The changes of one [Store] take turns, with at most one
// of each client in the queue, so use one Store per process. The store starts each
// transaction as an immediate one.
func SQLite() Dialect { return Dialect{&sqLite} }

// String returns the name of the dialect, or "" for the zero value.
func (d Dialect) String() string {
	if d.spec == nil {
		return ""
	}
	return d.spec.Name
}

// Schema returns the statements that [Store.Migrate] runs on an empty database, for your own
// migration tool. You can run them repeatedly. Pass the prefix of your [Options]. With the
// default prefix, your tool can use the files in the directory schema instead.
//
// They also create the view wh_webhook (with your prefix), for people. Its columns are:
//
//	client, entity  their names. Entity is NULL for the base. On PostgreSQL, a byte beyond
//	                ASCII is shown as a backslash and three octal digits.
//	source          base, override or off
//	origin          scheme, host and port, in lower case. It is NULL for off, and for a URL with a user name.
//	since           in UTC, unless the column has a time zone
//
// The view has no row that a set-all has dropped. Each query on it scans the tables.
//
// Schema returns an error for an invalid prefix and for the zero Dialect.
func (d Dialect) Schema(prefix string) ([]string, error) {
	if d.spec == nil {
		return nil, errNoDialect
	}
	prefix, err := tablePrefix(prefix)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, m := range d.spec.migrations(prefix) {
		all = append(all, m.statements...)
	}
	return all, nil
}

var errNoDialect = errors.New("sqlstore: no dialect: pass PostgreSQL, MySQL or SQLite")

func tablePrefix(prefix string) (string, error) {
	prefix, err := dialect.Prefix(prefix)
	if err != nil {
		return "", fmt.Errorf("sqlstore: %w", err)
	}
	return prefix, nil
}

// dialectSpec has everything that depends on the database.
type dialectSpec struct {
	dialect.Engine

	// oneWriter says that the database allows one writing transaction at a time, and that
	// others wait for it regardless of their context. The store then makes changes wait
	// before they have anything to commit.
	oneWriter bool

	schema    fs.FS  // contains the files of the migrations
	directory string // of the dialect's files in schema
	lock      migrationLock

	// check queries the version of the schema, whether the store can use it on this
	// connection, and {standby}. It fails on the tables of another dialect. unfit is the
	// error if the store can't use the schema.
	check string
	unfit error

	// touch inserts the row of the client or updates its mark, and locks it against all other
	// changes of the client until the transaction ends. put then inserts an override with the
	// generation in that row. Its clause replace makes it replace an existing override.
	touch, put, replace string
	// set does both in one statement, if the database has one that locks first. Otherwise
	// it's "".
	set    string
	setAll string
	// url is the parameter for a URL where no column gives it a type.
	url string
	// replaceDelivery is the clause of saveDelivery for an existing row. It keeps a later
	// one.
	replaceDelivery, expireDeliveries string

	changes string // "" if the dialect has no feed

	// countErased counts a client whose row the same transaction has deleted.
	countErased string

	// change is an expression for the number of a client's latest change. A client's
	// generations start with the time, so an erased client with the same name had lower ones.
	change string

	// identity is an expression for a text that differs once the database has lost committed
	// changes. Marks and numbers from before mean something else then.
	identity string

	// standby is an expression for whether the server is a replica, which may lack the latest
	// changes.
	standby string

	// code returns the server's code for an error, or "" for other errors. codes is the
	// database's name for them. outcomes says what each code proves.
	code     func(err error) string
	codes    string
	outcomes provedOutcomes
}

// begin returns the statement that starts a transaction. With oneWriter, it also waits for
// the write lock.
func (g *dialectSpec) begin() string {
	if g.oneWriter {
		return "begin immediate"
	}
	return "begin"
}

// queries are the statements of a store.
type queries struct {
	prefix                        string
	tables                        []string // that every version since the oldest has
	set, unset, resolveOutcome    []statement
	setAll, lock, resolve, list   statement
	check, fit                    statement
	version, dirty, lowest        statement
	bound, purge, purgeAll, swept statement
	anyOverride, occupied         statement
	erase                         []statement
	changes                       statement
	versions                      string
	listClients                   statement

	loadDelivery, saveDelivery, expireDeliveries statement
	generation, deliveryBound                    statement
	dropDeliveries, dropAllDeliveries            []statement
}

// queries compiles the statements for tables with a prefix.
func (g *dialectSpec) queries(prefix string) queries {
	expressions := strings.NewReplacer("{identity}", g.identity, "{standby}", g.standby, "{change}", g.change,
		"{vacated}", "CASE WHEN length("+g.url+") > 0 THEN 0 ELSE {now} END")
	compile := func(template string) statement { return g.Compile(expressions.Replace(template), prefix) }
	tables := g.tables(prefix)
	isDelivery := func(table string) bool { return table == prefix+"delivery" }
	q := queries{
		prefix:         prefix,
		tables:         tables,
		set:            []statement{compile(g.touch), compile(g.put + g.replace)},
		unset:          []statement{compile(g.touch), compile(g.put + onlyWithBase + g.replace), compile(drop)},
		resolveOutcome: []statement{compile(awaitOthers), compile(replaceMark)},
		setAll:         compile(g.setAll),
		lock:           compile(awaitOthers),
		resolve:        compile(resolve),
		list:           compile(list),
		check:          compile(g.check + g.Present(tables)),
		fit:            compile(g.check + g.Present(slices.DeleteFunc(slices.Clone(tables), isDelivery))),
		version:        compile(version),
		dirty:          compile(dirty),
		lowest:         compile(lowest),
		bound:          compile(bound),
		purge:          compile(purge),
		purgeAll:       compile(purgeAll),
		swept:          compile(swept),
		anyOverride:    compile(anyOverride),
		occupied:       compile(occupied),
		erase:          []statement{compile(eraseClient), compile(eraseDeliveries), compile(g.countErased)},
		listClients:    compile(listClients),
		changes:        compile(g.changes),
		versions:       dialect.Tables(expressions.Replace(versions), prefix),

		loadDelivery:      compile(loadDelivery),
		saveDelivery:      compile(saveDelivery + g.replaceDelivery),
		expireDeliveries:  compile(g.expireDeliveries),
		deliveryBound:     compile(deliveryBound),
		generation:        compile(generation),
		dropDeliveries:    []statement{compile(awaitOthers), compile(dropDeliveries + ifVacant)},
		dropAllDeliveries: []statement{compile(awaitOthers), compile(dropAllDeliveries + ifVacant)},
	}
	if g.set != "" {
		q.set = []statement{compile(g.set)}
	}
	return q
}

// Statements that all dialects share. The first column of a read is {standby}, in the first
// row. That row is there even if nothing was found.
//
// The lookups select an override by its complete key, with the generation from a sub-select.
// We have seen query planners execute joins with only a part of the key. An empty URL is
// recognized by its length, because an empty text and an empty blob are different values to
// SQLite.
//
// A query for the first of some rows has the order of a key, and isn't an EXISTS. Otherwise
// PostgreSQL's plan for all arguments can be a scan of the table, which is long if there are none.
const (
	resolve = `
SELECT {standby}, c.url, c.since,
  (SELECT o.url FROM {override} o WHERE o.client = c.id AND o.gen = c.gen AND o.entity = @entity),
  (SELECT o.since FROM {override} o WHERE o.client = c.id AND o.gen = c.gen AND o.entity = @entity)
FROM (SELECT 1) p LEFT JOIN {client} c ON c.id = @client`

	// list returns the row of the client first. The client is in the column of the entities,
	// so that the column has a type.
	list = `
SELECT {standby}, 0 AS part, c.id AS entity, c.url, c.since FROM (SELECT 1) p LEFT JOIN {client} c ON c.id = @client
UNION ALL
SELECT false, 1, q.entity, q.url, q.since FROM (
  SELECT entity, url, since FROM {override}
  WHERE client = @client AND gen = (SELECT gen FROM {client} WHERE id = @client) AND entity > @after
  ORDER BY entity LIMIT @limit) q
ORDER BY part, entity`

	// put works in all dialects but PostgreSQL, which needs casts. An unset adds
	// onlyWithBase.
	put = `
INSERT INTO {override} (client, gen, entity, url, since)
SELECT id, gen, @entity, @url, @since FROM {client} WHERE id = @client`
	onlyWithBase = ` AND length(url) > 0`

	// replaceOnConflict is replace for all dialects but MySQL.
	replaceOnConflict = `
ON CONFLICT (client, gen, entity) DO UPDATE SET url = excluded.url, since = excluded.since`

	// drop unsets an entity of a client without a base, which needs no override that is off.
	// It follows touch in the same transaction.
	drop = `
DELETE FROM {override} WHERE client = @client AND entity = @entity
AND gen = (SELECT gen FROM {client} WHERE id = @client AND length(url) = 0)`

	// awaitOthers changes nothing, but waits for concurrent changes of the client. After it,
	// replaceMark finds the mark of the latest change.
	awaitOthers = `UPDATE {client} SET swept = swept WHERE id = @client`
	replaceMark = `UPDATE {client} SET mark = @next WHERE id = @client AND mark = @mark`

	version  = `SELECT version FROM {schema} WHERE id = 1`
	versions = `
SELECT {standby}, {identity} AS identity, NULL, (SELECT erased FROM {schema} WHERE id = 1)
UNION ALL
SELECT false, NULL, id, mark FROM {client} WHERE id IN (@ids)`

	// listClients reads a page by the key alone, and looks for overrides only if there's no
	// base. The limit in the inner sub-select keeps planners from joining the whole tables.
	listClients = `
SELECT {standby}, q.id, CASE WHEN length(q.url) > 0 THEN true
  ELSE (SELECT 1 FROM {override} o WHERE o.client = q.id AND o.gen = q.gen ORDER BY o.entity LIMIT 1) IS NOT NULL END
FROM (SELECT 1) p LEFT JOIN (
  SELECT id, gen, url FROM {client} WHERE id > @after ORDER BY id LIMIT @limit) q ON true
ORDER BY q.id`
)

// Statements of a sweep. They find rows by ranges of the key alone, so the other rows don't
// slow them down. New rows only go into a client's latest generation, so the ranges can't
// grow.
const (
	dirty = `
SELECT id, gen, mark, {change}, swept < gen, vacated > 0 AND vacated < {now} - @vacant FROM {client}
WHERE id > @after AND (swept < gen OR vacated > 0 AND vacated < {now} - @vacant) ORDER BY id LIMIT @limit`

	lowest = `
SELECT MIN(gen) FROM {override} WHERE client = @client AND gen < @gen`

	bound = `
SELECT entity FROM {override} WHERE client = @client AND gen = @gen ORDER BY entity LIMIT 1 OFFSET @skip`

	purge = `
DELETE FROM {override} WHERE client = @client AND gen = @gen AND entity <= @bound`

	purgeAll = `
DELETE FROM {override} WHERE client = @client AND gen = @gen`

	generation = `
SELECT gen FROM {client} WHERE id = @client`

	swept = `
UPDATE {client} SET swept = @gen WHERE id = @client AND swept < @gen`

	// anyOverride finds an override in any generation.
	anyOverride = `
SELECT 1 FROM {override} WHERE client = @client ORDER BY gen, entity LIMIT 1`

	// occupied records that a client without a base has overrides.
	occupied = `
UPDATE {client} SET vacated = 0 WHERE id = @client AND mark = @mark`
)

type (
	statement = dialect.Statement
	values    = dialect.Values
)
