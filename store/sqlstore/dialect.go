package sqlstore

import (
	"errors"
	"fmt"
	"regexp"
)

// Dialect is the SQL of one kind of database: one of [PostgreSQL],
// [GenericPostgreSQL], [MySQL] and [SQLite]. The zero value is none.
type Dialect struct{ grammar *grammar }

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
	if d.grammar == nil {
		return ""
	}
	return d.grammar.name
}

// Schema returns the statements that [Store.Migrate] runs on an empty database,
// for those who have a tool of their own for that. They can be run again. The
// prefix is as in [Options]; an invalid one, or the zero Dialect, gives an error.
func (d Dialect) Schema(prefix string) ([]string, error) {
	if d.grammar == nil {
		return nil, errNoDialect
	}
	prefix, err := tablePrefix(prefix)
	if err != nil {
		return nil, err
	}
	all := make([]string, len(d.grammar.schema))
	for i, template := range d.grammar.schema {
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

// grammar is what a dialect says in words of its own. The rest of the package
// knows no database.
type grammar struct {
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
	classify func(err error) verdict
}

// begin begins a transaction; where one at a time can write, with the wait for that.
func (g *grammar) begin() string {
	if g.oneWriter {
		return "begin immediate"
	}
	return "begin"
}

// queries are the statements of a store.
type queries struct {
	prefix                        string
	set, unset, settle            []statement
	setAll, resolve, list         statement
	version, dirty, lowest        statement
	bound, purge, purgeAll, swept statement
	changes                       statement
	versions                      string
}

func (g *grammar) queries(prefix string) queries {
	compile := func(template string) statement { return newStatement(template, prefix, g.numbered) }
	q := queries{
		prefix:   prefix,
		set:      []statement{compile(g.touch), compile(g.put)},
		unset:    []statement{compile(g.touch), compile(g.tombstone), compile(drop)},
		settle:   []statement{compile(await), compile(remark)},
		setAll:   compile(g.setAll),
		resolve:  compile(resolve),
		list:     compile(list),
		version:  compile(version),
		dirty:    compile(dirty),
		lowest:   compile(lowest),
		bound:    compile(bound),
		purge:    compile(purge),
		purgeAll: compile(purgeAll),
		swept:    compile(swept),
		changes:  compile(g.changes),
		versions: withTables(versions, prefix),
	}
	if g.set != "" {
		q.set = []statement{compile(g.set)}
	}
	return q
}
