package sqlstore

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Dialect is the SQL of one kind of database: [PostgreSQL], [MySQL] or [SQLite]. The zero
// value is invalid.
type Dialect struct{ spec *dialectSpec }

// PostgreSQL is the dialect of PostgreSQL 13 or later, and of databases built from it.
// It supports a [cache.Feed].
func PostgreSQL() Dialect { return Dialect{&postgreSQL} }

// MySQL is the dialect of MySQL 8 or later and of MariaDB 10.5 or later.
func MySQL() Dialect { return Dialect{&mySQL} }

// SQLite is the dialect of SQLite 3.37 or later. It supports a [cache.Feed].
func SQLite() Dialect { return Dialect{&sqLite} }

// String returns the name of the dialect; "" for the zero value.
func (d Dialect) String() string {
	if d.spec == nil {
		return ""
	}
	return d.spec.name
}

// Schema returns the statements that [Store.Migrate] runs on an empty database, for use
// with a separate migration tool. They are idempotent. The prefix is that of [Options];
// with the default one, they are those of the files in the directory schema, which such a
// tool can use too. Schema returns an error if the prefix is invalid, or for the zero
// Dialect.
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

var errNoDialect = errors.New("sqlstore: the zero Dialect")

// prefixRule matches prefixes that no database requires to be quoted.
var prefixRule = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// defaultPrefix is the prefix of the tables in the migrations.
const defaultPrefix = "wh_"

func tablePrefix(prefix string) (string, error) {
	if prefix == "" {
		return defaultPrefix, nil
	}
	if !prefixRule.MatchString(prefix) {
		return "", fmt.Errorf("sqlstore: invalid table prefix %q", prefix)
	}
	return prefix, nil
}

// dialectSpec is everything specific to one dialect. The rest of the package is
// independent of the database.
type dialectSpec struct {
	name     string
	numbered bool // parameters are $1, $2, … and not ?

	// oneWriter specifies that the database allows one writing transaction at a time,
	// and that others wait for it regardless of their context. Changes then wait before
	// their transaction has anything to commit.
	oneWriter bool

	schema    fs.FS  // has the files of the migrations
	directory string // of the files
	lock      migrationLock

	// check is a query for the version of the schema, for whether the store can use it on this
	// connection, and for {standby}; it fails on the tables of another dialect. unfit is the
	// error if the store cannot.
	check string
	unfit error

	// touch inserts the row of the client, or updates its mark, and locks it against
	// every other change of the client until the transaction ends. put follows it in
	// the transaction, and inserts an override of the generation in that row; its
	// clause replace makes it replace an existing one.
	touch, put, replace string
	// set combines both in one statement, where one exists that locks first; else "".
	set    string
	setAll string
	// replaceDelivery is the clause of saveDelivery for a row that exists: it keeps a later one.
	replaceDelivery, expireDeliveries string

	changes string // "" without support for a feed

	// countErased counts a client whose row was deleted in the same transaction.
	countErased string

	// now is an expression for the time of the server, in microseconds and the same throughout
	// a statement. The generations of a client start with it: those of an erased client of the
	// same name ended before. change is one for the number of a client's latest change.
	now, change string

	// identity is an expression for a text that differs after the database lost committed
	// changes, since marks and numbers from before do not have the same meaning then.
	identity string

	// standby is an expression for whether the server replicates another one, whose latest
	// changes it may lack. lagging is one for whether they may be older than {lag}
	// microseconds; "" if the server does not know.
	standby, lagging string

	advices []advice // about settings, with the limit of the pool as @pool

	// code returns the code of a server's error, "" for other errors; codes is what they are
	// called. outcomes are those that a code proves.
	code     func(err error) string
	codes    string
	outcomes provedOutcomes
}

// urlParam is the parameter of a URL in an expression without a column that gives it a type.
func (g *dialectSpec) urlParam() string {
	if g.numbered {
		return "@url::bytea"
	}
	return "@url"
}

// begin returns the statement that starts a transaction. With oneWriter it also waits
// for the write lock.
func (g *dialectSpec) begin() string {
	if g.oneWriter {
		return "begin immediate"
	}
	return "begin"
}

// queries are the statements of a store.
type queries struct {
	prefix                        string
	set, unset, resolveOutcome    []statement
	setAll, lock, resolve, list   statement
	check, version, dirty, lowest statement
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

// queries compiles the statements for tables with a prefix, and for standbys that lag behind
// by at most the given time.
func (g *dialectSpec) queries(prefix string, lag time.Duration) queries {
	refused := g.standby
	if lag > 0 {
		refused = "(" + refused + " AND " + strings.ReplaceAll(g.lagging, "{lag}", strconv.FormatInt(lag.Microseconds(), 10)) + ")"
	}
	expressions := strings.NewReplacer("{identity}", g.identity, "{standby}", refused, "{now}", g.now, "{change}", g.change,
		"{vacated}", "CASE WHEN length("+g.urlParam()+") > 0 THEN 0 ELSE "+g.now+" END")
	compile := func(template string) statement {
		return newStatement(expressions.Replace(template), prefix, g.numbered)
	}
	q := queries{
		prefix:         prefix,
		set:            []statement{compile(g.touch), compile(g.put + g.replace)},
		unset:          []statement{compile(g.touch), compile(g.put + onlyWithBase + g.replace), compile(drop)},
		resolveOutcome: []statement{compile(awaitOthers), compile(replaceMark)},
		setAll:         compile(g.setAll),
		lock:           compile(awaitOthers),
		resolve:        compile(resolve),
		list:           compile(list),
		check:          compile(g.check),
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
		versions:       withTables(expressions.Replace(versions), prefix),

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

// Statements common to all dialects. The first column of a read is {standby} in the first row
// of the result, which exists also if nothing was found.
//
// The lookups select an override by its complete key, with the generation from a
// sub-select: query planners were seen to execute joins with a part of the key only.
// An empty URL is recognized by its length, since to SQLite an empty text and an empty
// blob are different values.
const (
	resolve = `
SELECT {standby}, c.url, c.since,
  (SELECT o.url FROM {override} o WHERE o.client = c.id AND o.gen = c.gen AND o.entity = @entity),
  (SELECT o.since FROM {override} o WHERE o.client = c.id AND o.gen = c.gen AND o.entity = @entity)
FROM (SELECT 1) p LEFT JOIN {client} c ON c.id = @client`

	// list returns the row of the client first, with the client in the column of the
	// entities, which gives the column its type.
	list = `
SELECT {standby}, 0 AS part, c.id AS entity, c.url, c.since FROM (SELECT 1) p LEFT JOIN {client} c ON c.id = @client
UNION ALL
SELECT false, 1, q.entity, q.url, q.since FROM (
  SELECT entity, url, since FROM {override}
  WHERE client = @client AND gen = (SELECT gen FROM {client} WHERE id = @client) AND entity > @after
  ORDER BY entity LIMIT @limit) q
ORDER BY part, entity`

	// put is the put of all dialects but PostgreSQL, which needs casts. That of an
	// unset writes only with a base.
	put = `
INSERT INTO {override} (client, gen, entity, url, since)
SELECT id, gen, @entity, @url, @since FROM {client} WHERE id = @client`
	onlyWithBase = ` AND length(url) > 0`

	// replaceOnConflict is the replace of all dialects but MySQL.
	replaceOnConflict = `
ON CONFLICT (client, gen, entity) DO UPDATE SET url = excluded.url, since = excluded.since`

	// drop is the statement of an unset for a client without a base, which needs
	// no override that is off. It follows touch in the same transaction.
	drop = `
DELETE FROM {override} WHERE client = @client AND entity = @entity
AND gen = (SELECT gen FROM {client} WHERE id = @client AND length(url) = 0)`

	// awaitOthers changes nothing, but waits for concurrent changes of the client.
	// replaceMark then finds the mark of the latest one.
	awaitOthers = `UPDATE {client} SET swept = swept WHERE id = @client`
	replaceMark = `UPDATE {client} SET mark = @next WHERE id = @client AND mark = @mark`

	version  = `SELECT version FROM {schema} WHERE id = 1`
	versions = `
SELECT {standby}, {identity} AS identity, NULL, (SELECT erased FROM {schema} WHERE id = 1)
UNION ALL
SELECT false, NULL, id, mark FROM {client} WHERE id IN (@ids)`

	// listClients reads a page by the key alone, and looks for overrides only where there is no
	// base. The limit of the inner sub-select keeps planners from joining the whole tables.
	listClients = `
SELECT {standby}, q.id, CASE WHEN length(q.url) > 0 THEN true
  ELSE (SELECT 1 FROM {override} o WHERE o.client = q.id AND o.gen = q.gen LIMIT 1) IS NOT NULL END
FROM (SELECT 1) p LEFT JOIN (
  SELECT id, gen, url FROM {client} WHERE id > @after ORDER BY id LIMIT @limit) q ON true
ORDER BY q.id`
)

// Statements of a sweep. They find rows by ranges of the key alone, so that the
// remaining rows do not slow them down. Rows are only ever added to a client's latest
// generation, so the ranges cannot grow in the meantime.
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

	// anyOverride finds an override of any generation.
	anyOverride = `
SELECT 1 FROM {override} WHERE client = @client LIMIT 1`

	// occupied records that a client without a base has overrides.
	occupied = `
UPDATE {client} SET vacated = 0 WHERE id = @client AND mark = @mark`

	// eraseClient locks the row of a client and deletes it, unless the client was changed or has
	// something. The statements after it in the transaction do nothing while there is a row.
	eraseClient = `
DELETE FROM {client} WHERE id = @client AND mark = @mark AND length(url) = 0
AND NOT EXISTS (SELECT 1 FROM {override} WHERE client = @client)`
	eraseDeliveries = `
DELETE FROM {delivery} WHERE client = @client AND NOT EXISTS (SELECT id FROM {client} WHERE id = @client)`
)

// statement is SQL in the syntax of a driver, with the names of its parameters in the
// order of their arguments.
type statement struct {
	text   string
	params []string
}

// values are the parameters of a statement by name.
type values map[string]any

// args are the values in the order of the statement.
func (s statement) args(v values) []any {
	args := make([]any, len(s.params))
	for i, name := range s.params {
		args[i] = v[name]
	}
	return args
}

// In the templates of statements, {client} is the table and @entity the parameter of
// that name; @@port is a variable of MySQL.
var (
	tablePattern = regexp.MustCompile(`\{([a-z_]+)\}`)
	paramPattern = regexp.MustCompile(`@{1,2}[a-z]+[0-9]*`)
)

// withTables replaces the tables in a template by their names.
func withTables(template, prefix string) string {
	return tablePattern.ReplaceAllString(template, prefix+"$1")
}

// newStatement compiles a template. A numbered parameter, as in $1, is passed once
// however often it occurs in the text.
func newStatement(template, prefix string, numbered bool) statement {
	var s statement
	number := make(map[string]int)
	s.text = paramPattern.ReplaceAllStringFunc(withTables(template, prefix), func(param string) string {
		name := param[1:]
		if name[0] == '@' {
			return param
		}
		if number[name] == 0 || !numbered {
			s.params = append(s.params, name)
			number[name] = len(s.params)
		}
		if !numbered {
			return "?"
		}
		return "$" + strconv.Itoa(number[name])
	})
	return s
}
