package sqlstore

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
)

// Dialect is the SQL of one kind of database: one of [PostgreSQL],
// [GenericPostgreSQL], [MySQL] and [SQLite]. The zero value is none.
type Dialect struct{ spec *dialectSpec }

// PostgreSQL is for PostgreSQL from version 13 on, and what is PostgreSQL inside.
// It has a [webhookcfg.Feed].
func PostgreSQL() Dialect { return Dialect{&postgreSQL} }

// GenericPostgreSQL is for databases that speak the protocol and the SQL of
// PostgreSQL without its transaction numbers, such as CockroachDB and YugabyteDB.
// Whatever isolation their connections have is enough.
func GenericPostgreSQL() Dialect { return Dialect{&genericPostgreSQL} }

// MySQL is for MySQL from version 8 on and for MariaDB from version 10.5 on.
func MySQL() Dialect { return Dialect{&mySQL} }

// SQLite is for SQLite from version 3.37 on. It has a [webhookcfg.Feed].
func SQLite() Dialect { return Dialect{&sqLite} }

// String returns the name of the dialect; "" for the zero value.
func (d Dialect) String() string {
	if d.spec == nil {
		return ""
	}
	return d.spec.name
}

// Schema returns the statements that [Store.Migrate] runs on an empty database,
// for those who have a tool of their own for that. They can be run again. The
// prefix is as in [Options]; an invalid one, or the zero Dialect, gives an error.
func (d Dialect) Schema(prefix string) ([]string, error) {
	if d.spec == nil {
		return nil, errNoDialect
	}
	prefix, err := tablePrefix(prefix)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(d.spec.schema))
	for i, template := range d.spec.schema {
		all[i] = withTables(template, prefix)
	}
	return all, nil
}

var errNoDialect = errors.New("sqlstore: the zero Dialect")

// prefixRule lets through only what no database wants quoted.
var prefixRule = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

func tablePrefix(prefix string) (string, error) {
	if prefix == "" {
		return "wh_", nil
	}
	if !prefixRule.MatchString(prefix) {
		return "", fmt.Errorf("sqlstore: invalid table prefix %q", prefix)
	}
	return prefix, nil
}

// dialectSpec is what a dialect says in words of its own. The rest of the package
// knows no database.
type dialectSpec struct {
	name     string
	numbered bool // parameters are $1, $2, … and not ?

	// oneWriter says that the database lets one transaction write at a time, and that
	// the others wait for it in a way that no context ends. That wait then comes before
	// there is anything to commit.
	oneWriter bool

	schema []string
	lock   migrationLock

	// touch gives the client a row, and its row a new mark; it keeps every other
	// change of the client out until the transaction ends. put, which comes after it
	// in the transaction, writes an override of the generation that the row names.
	touch, put string
	// set is both in one statement, where there is one that locks first.
	set string
	// tombstone is put for an unset, which writes only if there is a base.
	tombstone string
	setAll    string
	changes   string // "" where nothing tells what changed

	// classify says what an error of the driver tells about a write.
	classify func(err error) outcome
}

// begin begins a transaction; where one at a time can write, with the wait for that.
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
	setAll, resolve, list         statement
	version, dirty, lowest        statement
	bound, purge, purgeAll, swept statement
	changes                       statement
	versions                      string
}

func (g *dialectSpec) queries(prefix string) queries {
	compile := func(template string) statement { return newStatement(template, prefix, g.numbered) }
	q := queries{
		prefix:         prefix,
		set:            []statement{compile(g.touch), compile(g.put)},
		unset:          []statement{compile(g.touch), compile(g.tombstone), compile(drop)},
		resolveOutcome: []statement{compile(awaitOthers), compile(replaceMark)},
		setAll:         compile(g.setAll),
		resolve:        compile(resolve),
		list:           compile(list),
		version:        compile(version),
		dirty:          compile(dirty),
		lowest:         compile(lowest),
		bound:          compile(bound),
		purge:          compile(purge),
		purgeAll:       compile(purgeAll),
		swept:          compile(swept),
		changes:        compile(g.changes),
		versions:       withTables(versions, prefix),
	}
	if g.set != "" {
		q.set = []statement{compile(g.set)}
	}
	return q
}

// What every dialect says in the same words.
//
// The lookups take an override by the whole of its key, the generation included,
// which a sub-select names: joins were seen to be planned with a part of the key.
// An empty URL is asked for by its length, since an empty text and an empty blob
// are different values to SQLite.
const (
	resolve = `
SELECT c.url, c.since,
  (SELECT o.url FROM {override} o WHERE o.client = c.id AND o.gen = c.gen AND o.entity = @entity),
  (SELECT o.since FROM {override} o WHERE o.client = c.id AND o.gen = c.gen AND o.entity = @entity)
FROM {client} c WHERE c.id = @client`

	// list begins with the row of the client, whose name stands in the column of the
	// entities to give the column its type.
	list = `
SELECT 0 AS part, id AS entity, url, since FROM {client} WHERE id = @client
UNION ALL
SELECT 1, p.entity, p.url, p.since FROM (
  SELECT entity, url, since FROM {override}
  WHERE client = @client AND gen = (SELECT gen FROM {client} WHERE id = @client) AND entity > @after
  ORDER BY entity LIMIT @limit) p
ORDER BY part, entity`

	// drop is what an unset does where there is no base to be kept out by a
	// tombstone. It comes after touch, in the same transaction.
	drop = `
DELETE FROM {override} WHERE client = @client AND entity = @entity
AND gen = (SELECT gen FROM {client} WHERE id = @client AND length(url) = 0)`

	// awaitOthers changes nothing, but waits for those who change the client. By then replaceMark
	// sees who that was.
	awaitOthers = `UPDATE {client} SET swept = swept WHERE id = @client`
	replaceMark = `UPDATE {client} SET mark = @next WHERE id = @client AND mark = @mark`

	version  = `SELECT version FROM {schema} WHERE id = 1`
	versions = `SELECT id, mark FROM {client} WHERE id IN (@ids)`
)

// The sweep finds rows by ranges of the key alone, so that what is left does not
// slow it down. No row is ever added to a generation that is not the client's
// latest, so the ranges cannot grow meanwhile.
const (
	dirty = `
SELECT id, gen FROM {client} WHERE id > @after AND swept < gen ORDER BY id LIMIT @limit`

	lowest = `
SELECT MIN(gen) FROM {override} WHERE client = @client AND gen < @gen`

	bound = `
SELECT entity FROM {override} WHERE client = @client AND gen = @gen ORDER BY entity LIMIT 1 OFFSET @skip`

	purge = `
DELETE FROM {override} WHERE client = @client AND gen = @gen AND entity <= @bound`

	purgeAll = `
DELETE FROM {override} WHERE client = @client AND gen = @gen`

	swept = `
UPDATE {client} SET swept = @gen WHERE id = @client AND swept < @gen`
)

// statement is SQL as a driver takes it, with the names of its parameters in the
// order in which it wants them.
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

// The templates of statements write {client} for the table of that name, and
// @entity for the parameter of that name.
var (
	tableMark = regexp.MustCompile(`\{([a-z_]+)\}`)
	paramMark = regexp.MustCompile(`@[a-z]+[0-9]*`)
)

// withTables puts the names of the tables into a template.
func withTables(template, prefix string) string {
	return tableMark.ReplaceAllString(template, prefix+"$1")
}

// newStatement makes a statement of a template. Numbered parameters, as in $1,
// are passed once however often they stand in the text.
func newStatement(template, prefix string, numbered bool) statement {
	var s statement
	number := make(map[string]int)
	s.text = paramMark.ReplaceAllStringFunc(withTables(template, prefix), func(mark string) string {
		name := mark[1:]
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
