// Package dialect writes the library's SQL for PostgreSQL, MySQL, MariaDB and SQLite. Packages
// write a statement once, as a template, and compile it for each of them.
package dialect

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Engine is what all packages need to know about a kind of database.
type Engine struct {
	// Name is the dialect's name. The tables record it.
	Name string
	// Numbered means that parameters are $1, $2, … and not ?.
	Numbered bool
	// Now is an expression for the server's time in microseconds. It's the same throughout a
	// statement.
	Now string

	// existing are rows of the table @table in the catalogue: none if it doesn't exist.
	existing string
	// noTable is the code for a missing table, if the catalogue hides those that the user has no
	// privilege for. Drivers have no common way to return a code, but put it into the text.
	noTable string
	// hasLateKeys means that a restore creates the primary keys after the rows.
	hasLateKeys bool
	// denied is the code for a table that the user has no privilege for.
	denied string

	advices []Advice
}

// The engines. MySQL is MariaDB too.
var (
	PostgreSQL = Engine{Name: "PostgreSQL", Numbered: true, Now: `(extract(epoch FROM statement_timestamp()) * 1000000)::bigint`, existing: `pg_class WHERE oid = to_regclass(@table::text)`, denied: `42501`, hasLateKeys: true, advices: advicesPostgreSQL}
	MySQL      = Engine{Name: "MySQL", Now: `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`, existing: `information_schema.tables WHERE table_schema = DATABASE() AND table_name = @table`, noTable: `1146`, denied: `1142`, advices: advicesMySQL}
	SQLite     = Engine{Name: "SQLite", Now: `(CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)`, existing: `pragma_table_info(@table)`, advices: advicesSQLite}
)

// Statement is SQL in the syntax of a driver.
type Statement struct {
	// Text is the SQL.
	Text string
	// Params are the names of the parameters, in the order of the arguments.
	Params []string
}

// Values are a statement's arguments by parameter name.
type Values map[string]any

// Args returns the arguments in the order of the statement.
func (s Statement) Args(v Values) []any {
	args := make([]any, len(s.Params))
	for i, name := range s.Params {
		args[i] = v[name]
	}
	return args
}

// In the templates, {client} is a table and @entity is a parameter. @@port is a variable of
// MySQL and stays.
var (
	tablePattern = regexp.MustCompile(`\{([a-z_]+)\}`)
	paramPattern = regexp.MustCompile(`@{1,2}[a-z]+[0-9]*`)
)

// Tables puts the names of tables with a prefix into a template.
func Tables(template, prefix string) string {
	return tablePattern.ReplaceAllString(template, prefix+"$1")
}

// Compile returns the statement of a template for tables with a prefix. In the template, {now}
// is the time, {client} a table and @entity a parameter. A numbered parameter such as $1 has
// one argument, even if it occurs several times.
func (e Engine) Compile(template, prefix string) Statement {
	var s Statement
	number := make(map[string]int)
	text := Tables(strings.ReplaceAll(template, "{now}", e.Now), prefix)
	s.Text = paramPattern.ReplaceAllStringFunc(text, func(param string) string {
		name := param[1:]
		if name[0] == '@' {
			return param
		}
		if number[name] == 0 || !e.Numbered {
			s.Params = append(s.Params, name)
			number[name] = len(s.Params)
		}
		if !e.Numbered {
			return "?"
		}
		return "$" + strconv.Itoa(number[name])
	})
	return s
}

// DefaultPrefix is the prefix in the files of the schemas.
const DefaultPrefix = "wh_"

// prefixRule matches the prefixes that you don't have to quote in any of the databases.
var prefixRule = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

// Prefix returns the prefix of the tables' names: the given one, or the default if it's empty.
func Prefix(prefix string) (string, error) {
	if prefix == "" {
		return DefaultPrefix, nil
	}
	if !prefixRule.MatchString(prefix) {
		return "", fmt.Errorf("invalid table prefix %q: start with a lower-case letter, then up to 31 lower-case letters, digits and underscores", prefix)
	}
	return prefix, nil
}

// Schema returns the statements of a schema's file, for tables with a prefix. Don't write a
// semicolon into a statement or a comment there.
func Schema(file, prefix string) (statements []string) {
	for part := range strings.SplitSeq(file, ";") {
		var lines []string
		for line := range strings.Lines(part) {
			if !strings.HasPrefix(line, "--") {
				lines = append(lines, line)
			}
		}
		if statement := strings.TrimSpace(strings.Join(lines, "")); statement != "" {
			statements = append(statements, strings.ReplaceAll(statement, DefaultPrefix, prefix))
		}
	}
	return statements
}
