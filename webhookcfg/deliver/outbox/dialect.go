package outbox

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/store/sqlstore"
)

// dialect has what differs between databases.
type dialect struct {
	name     string
	file     string // of the schema
	numbered bool   // placeholders are $1, $2, … and not ?

	// now is an expression for the server's time in microseconds.
	now string

	// insertOnce and onConflict make an INSERT do nothing if the row exists. insertOnce
	// starts the statement.
	insertOnce, onConflict string

	// lockRows ends a SELECT that locks rows, and leaves out those that others have locked.
	lockRows string

	// outcomes sets the columns of notifications from JSON.
	outcomes string

	lock string // for a migration
}

const (
	setOutcome  = `state = v.s, attempts = v.a, due = CASE WHEN v.s = 1 AND v.d = 0 THEN 0 ELSE {now} + v.d END, since = CASE WHEN v.a > {message}.attempts THEN v.w ELSE since END, status = v.c, reason = v.r`
	stillWaits  = ` WHERE {message}.seq = v.n AND {message}.state < 2`
	jsonOutcome = `json_extract(value, '$.n') AS n, json_extract(value, '$.s') AS s, json_extract(value, '$.a') AS a, json_extract(value, '$.d') AS d, json_extract(value, '$.c') AS c, json_extract(value, '$.r') AS r, json_extract(value, '$.w') AS w`
)

var dialects = []*dialect{
	{
		name: sqlstore.PostgreSQL().String(), file: "schema/postgresql.sql", numbered: true,
		now:        `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`,
		insertOnce: `INSERT`, onConflict: ` ON CONFLICT DO NOTHING`,
		lockRows: ` FOR UPDATE SKIP LOCKED`,
		outcomes: `
UPDATE {message} SET ` + setOutcome + `
FROM json_to_recordset(@rows::text::json) AS v(n bigint, s smallint, a integer, d bigint, c integer, r text, w bigint)` + stillWaits,
		lock: `SELECT pg_advisory_xact_lock(hashtext('{message}'))`,
	},
	{
		name: sqlstore.SQLite().String(), file: "schema/sqlite.sql",
		now:        `(CAST(strftime('%s', 'now') AS INTEGER) * 1000000 + CAST(substr(strftime('%f', 'now'), 4) AS INTEGER) * 1000)`,
		insertOnce: `INSERT`, onConflict: ` ON CONFLICT DO NOTHING`,
		outcomes: `
UPDATE {message} SET ` + setOutcome + `
FROM (SELECT ` + jsonOutcome + ` FROM json_each(@rows)) AS v` + stillWaits,
	},
	{
		name: sqlstore.MySQL().String(), file: "schema/mysql.sql",
		now:        `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))`,
		insertOnce: `INSERT IGNORE`,
		lockRows:   ` FOR UPDATE SKIP LOCKED`,
		outcomes: `
UPDATE {message}, JSON_TABLE(@rows, '$[*]' COLUMNS (n bigint PATH '$.n', s integer PATH '$.s', a integer PATH '$.a',
  d bigint PATH '$.d', c integer PATH '$.c', r varchar(64) PATH '$.r', w bigint PATH '$.w')) AS v
SET since = CASE WHEN v.a > {message}.attempts THEN v.w ELSE since END, state = v.s, attempts = v.a,
  due = CASE WHEN v.s = 1 AND v.d = 0 THEN 0 ELSE {now} + v.d END, status = v.c, reason = v.r` + stillWaits,
	},
}

func dialectOf(d sqlstore.Dialect) (*dialect, error) {
	for _, known := range dialects {
		if known.name == d.String() {
			return known, nil
		}
	}
	return nil, errors.New("outbox: no dialect: pass PostgreSQL, MySQL or SQLite of package sqlstore")
}

// prefixRule is that of sqlstore.
var prefixRule = regexp.MustCompile(`^[a-z][a-z0-9_]{0,31}$`)

const defaultPrefix = "wh_"

func tablePrefix(prefix string) (string, error) {
	if prefix == "" {
		return defaultPrefix, nil
	}
	if !prefixRule.MatchString(prefix) {
		return "", fmt.Errorf("outbox: invalid table prefix %q: start with a lower-case letter, then up to 31 lower-case letters, digits and underscores", prefix)
	}
	return prefix, nil
}

// statement is SQL in the syntax of a driver, with the names of its parameters in the order
// of the arguments.
type statement struct {
	text   string
	params []string
}

// values are a statement's arguments by parameter name.
type values map[string]any

func (s statement) args(v values) []any {
	args := make([]any, len(s.params))
	for i, name := range s.params {
		args[i] = v[name]
	}
	return args
}

var paramPattern = regexp.MustCompile(`@[a-z]+[0-9]*`)

// compile returns the statement of a template, in which {line} is a table, {now} the time and
// @client a parameter.
func (d *dialect) compile(prefix, template string) statement {
	text := strings.NewReplacer(
		"{now}", d.now, "{message}", prefix+"outbox_message", "{line}", prefix+"outbox_line",
		"{process}", prefix+"outbox_process", "{schema}", prefix+"outbox_schema",
	).Replace(template)
	var s statement
	number := make(map[string]int)
	s.text = paramPattern.ReplaceAllStringFunc(text, func(param string) string {
		name := param[1:]
		if number[name] == 0 || !d.numbered {
			s.params = append(s.params, name)
			number[name] = len(s.params)
		}
		if !d.numbered {
			return "?"
		}
		return "$" + strconv.Itoa(number[name])
	})
	return s
}
