package outbox

import (
	"errors"
	"fmt"
	"strconv"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/store/sqlstore"
)

// engine has what differs between databases.
type engine struct {
	dialect.Engine
	file string // of the schema

	// insertOnce and onConflict make an INSERT do nothing if the row exists. insertOnce
	// starts the statement.
	insertOnce, onConflict string

	// lockRows ends a SELECT that locks rows, and leaves out those that others have locked.
	lockRows string

	// outcomes sets the columns of notifications from JSON.
	outcomes string

	// untilIdle ends an UPDATE that starts a transaction, so that the server ends the
	// transaction if its process does nothing for the time of a lease.
	untilIdle string

	lock string // for a migration
}

const (
	// maxHistory is the length of the longest history. It has room for some twenty attempts.
	maxHistory = `480`

	setOutcome  = `state = v.s, attempts = v.a, due = CASE WHEN v.s = 1 AND v.d = 0 THEN 0 ELSE {now} + v.d END, since = CASE WHEN v.a > {message}.attempts THEN v.w ELSE since END, status = v.c, reason = v.r`
	stillWaits  = ` WHERE {message}.seq = v.n AND {message}.enqueued = v.e AND {message}.state < 2`
	jsonOutcome = `json_extract(value, '$.n') AS n, json_extract(value, '$.e') AS e, json_extract(value, '$.s') AS s, json_extract(value, '$.a') AS a, json_extract(value, '$.d') AS d, json_extract(value, '$.c') AS c, json_extract(value, '$.r') AS r, json_extract(value, '$.w') AS w, json_extract(value, '$.h') AS h`
)

var engines = []*engine{
	{
		Engine: dialect.PostgreSQL, file: "schema/postgresql.sql",
		insertOnce: `INSERT`, onConflict: ` ON CONFLICT DO NOTHING`,
		lockRows: ` FOR UPDATE SKIP LOCKED`,
		outcomes: `
UPDATE {message} SET ` + setOutcome + `, history = right(history || v.h, ` + maxHistory + `)
FROM json_to_recordset(@rows::text::json) AS v(n bigint, e bigint, s smallint, a integer, d bigint, c integer, r text, w bigint, h text)` + stillWaits,
		untilIdle: ` AND set_config('idle_in_transaction_session_timeout', '` + strconv.FormatInt(lease.Milliseconds(), 10) + `', true) <> ''`,
		lock:      `SELECT pg_advisory_xact_lock(hashtext('{message}'))`,
	},
	{
		Engine: dialect.SQLite, file: "schema/sqlite.sql",
		insertOnce: `INSERT`, onConflict: ` ON CONFLICT DO NOTHING`,
		outcomes: `
UPDATE {message} SET ` + setOutcome + `, history = substr(history || v.h, -` + maxHistory + `)
FROM (SELECT ` + jsonOutcome + ` FROM json_each(@rows)) AS v` + stillWaits,
	},
	{
		Engine: dialect.MySQL, file: "schema/mysql.sql",
		insertOnce: `INSERT IGNORE`,
		lockRows:   ` FOR UPDATE SKIP LOCKED`,
		outcomes: `
UPDATE {message}, JSON_TABLE(@rows, '$[*]' COLUMNS (n bigint PATH '$.n', e bigint PATH '$.e', s integer PATH '$.s', a integer PATH '$.a',
  d bigint PATH '$.d', c integer PATH '$.c', r varchar(64) PATH '$.r', w bigint PATH '$.w', h varchar(64) PATH '$.h')) AS v
SET since = CASE WHEN v.a > {message}.attempts THEN v.w ELSE since END, state = v.s, attempts = v.a,
  due = CASE WHEN v.s = 1 AND v.d = 0 THEN 0 ELSE {now} + v.d END, status = v.c, reason = v.r, history = RIGHT(CONCAT(history, v.h), ` + maxHistory + `)` + stillWaits,
	},
}

func engineOf(d sqlstore.Dialect) (*engine, error) {
	for _, known := range engines {
		if known.Name == d.String() {
			return known, nil
		}
	}
	return nil, errors.New("outbox: no dialect: pass PostgreSQL, MySQL or SQLite of package sqlstore")
}

func tablePrefix(prefix string) (string, error) {
	prefix, err := dialect.Prefix(prefix)
	if err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	return prefix, nil
}

type (
	statement = dialect.Statement
	values    = dialect.Values
)
