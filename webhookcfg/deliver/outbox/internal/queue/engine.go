package queue

import (
	"embed"
	"errors"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/store/sqlstore"
)

//go:embed schema
var schemas embed.FS

// engine has what differs between databases.
type engine struct {
	dialect.Engine
	file string // of the schema

	// isHeld is a condition for notifications whose numbers are in a JSON array @held, and isOut for
	// those of entities that are in @out, in hexadecimal.
	isHeld, isOut string

	// groups starts a SELECT from f, the next @limit groups after @after in which something waits for
	// @client.
	groups string

	// moves and ends change notifications from JSON. See [move] and [end].
	moves, ends string
}

const (
	// steppedGroups steps through the groups by their index.
	steppedGroups = `
WITH RECURSIVE f (grp, n) AS (
  SELECT * FROM (SELECT grp, 1 FROM {message} WHERE state = 0 AND client = @client AND grp > @after ORDER BY grp LIMIT 1) q
  UNION ALL
  SELECT (SELECT m.grp FROM {message} m WHERE m.state = 0 AND m.client = @client AND m.grp > f.grp ORDER BY m.grp LIMIT 1), n + 1
  FROM f WHERE f.grp IS NOT NULL AND n < @limit
)`
	// groupedGroups does so on databases that would read all rows at each step, but know a loose
	// index scan.
	groupedGroups = `
WITH f AS (
  SELECT grp FROM {message} WHERE state = 0 AND client = @client AND grp > @after GROUP BY state, client, grp ORDER BY grp LIMIT @limit
)`

	// stillWaits guards a change: a notification that was sent again, has ended, or has the number of
	// one that was lost in a failover is another one.
	stillWaits = ` WHERE {message}.seq = v.n AND {message}.enqueued = v.e AND {message}.resent = v.r AND {message}.state = 0`

	setMove = `grp = v.g, due = CASE WHEN due > {now} THEN {now} ELSE due END`
	setEnd  = `state = v.s, grp = v.g, due = {now} + v.d, attempts = v.a, status = v.c, reason = v.w`

	// maxHistory is the length of the longest history. It has room for some twenty attempts.
	maxHistory = `480`
)

var postgreSQL = &engine{
	Engine: dialect.PostgreSQL, file: "schema/postgresql.sql", groups: steppedGroups,
	isHeld: `seq IN (SELECT value::bigint FROM json_array_elements_text(@held::text::json))`,
	isOut:  `entity IN (SELECT decode(value, 'hex') FROM json_array_elements_text(@out::text::json))`,
	moves: `
UPDATE {message} SET ` + setMove + `
FROM json_to_recordset(@rows::text::json) AS v(n bigint, e bigint, r bigint, g bigint)` + stillWaits,
	ends: `
UPDATE {message} SET ` + setEnd + `, history = right(history || v.h, ` + maxHistory + `)
FROM json_to_recordset(@rows::text::json) AS v(n bigint, e bigint, r bigint, s smallint, g bigint, d bigint, a integer, c integer, w text, h text)` + stillWaits,
}

var sqlite = &engine{
	Engine: dialect.SQLite, file: "schema/sqlite.sql", groups: steppedGroups,
	isHeld: `seq IN (SELECT value FROM json_each(@held))`,
	isOut:  `hex(entity) IN (SELECT value FROM json_each(@out))`,
	moves: `
UPDATE {message} SET ` + setMove + `
FROM (SELECT json_extract(value, '$.n') AS n, json_extract(value, '$.e') AS e, json_extract(value, '$.r') AS r, json_extract(value, '$.g') AS g FROM json_each(@rows)) AS v` + stillWaits,
	ends: `
UPDATE {message} SET ` + setEnd + `, history = substr(history || v.h, -` + maxHistory + `)
FROM (SELECT json_extract(value, '$.n') AS n, json_extract(value, '$.e') AS e, json_extract(value, '$.r') AS r, json_extract(value, '$.s') AS s, json_extract(value, '$.g') AS g,
  json_extract(value, '$.d') AS d, json_extract(value, '$.a') AS a, json_extract(value, '$.c') AS c, json_extract(value, '$.w') AS w, json_extract(value, '$.h') AS h FROM json_each(@rows)) AS v` + stillWaits,
}

var mySQL = &engine{
	Engine: dialect.MySQL, file: "schema/mysql.sql", groups: groupedGroups,
	isHeld: `seq IN (SELECT n FROM JSON_TABLE(@held, '$[*]' COLUMNS (n bigint PATH '$')) held)`,
	isOut:  `entity IN (SELECT UNHEX(h) FROM JSON_TABLE(@out, '$[*]' COLUMNS (h varchar(2048) CHARACTER SET ascii PATH '$')) out_)`,
	moves: `
UPDATE {message}, JSON_TABLE(@rows, '$[*]' COLUMNS (n bigint PATH '$.n', e bigint PATH '$.e', r bigint PATH '$.r', g bigint PATH '$.g')) AS v
SET ` + setMove + stillWaits,
	ends: `
UPDATE {message}, JSON_TABLE(@rows, '$[*]' COLUMNS (n bigint PATH '$.n', e bigint PATH '$.e', r bigint PATH '$.r', s integer PATH '$.s', g bigint PATH '$.g', d bigint PATH '$.d',
  a integer PATH '$.a', c integer PATH '$.c', w varchar(64) PATH '$.w', h varchar(64) PATH '$.h')) AS v
SET ` + setEnd + `, history = RIGHT(CONCAT(history, v.h), ` + maxHistory + `)` + stillWaits,
}

func engineOf(d sqlstore.Dialect) (*engine, error) {
	for _, known := range []*engine{postgreSQL, sqlite, mySQL} {
		if known.Name == d.String() {
			return known, nil
		}
	}
	return nil, errors.New("outbox: no dialect: pass PostgreSQL, MySQL or SQLite of package sqlstore")
}
