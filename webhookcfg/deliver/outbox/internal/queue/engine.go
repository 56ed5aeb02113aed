package queue

import (
	"errors"
	"strconv"
	"strings"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/store/sqlstore"
)

// Engine has what differs between databases.
type Engine struct {
	dialect.Engine
	// isHeld is a condition for notifications whose numbers are in a JSON array @held, and isOut for
	// those of entities that are in @out, in hexadecimal.
	isHeld, isOut string

	// groups starts a SELECT from f, the next @limit groups after @after in which something waits for
	// @client.
	groups string

	// InsertOnce starts an INSERT that does nothing if a row with the key exists, and onConflict and
	// the KEY end it. Replace starts one that replaces such a row, and replaced ends it.
	InsertOnce, onConflict string
	replace, replaced      string

	// clients starts a SELECT from f, the next @limit clients after @after with notifications in STATE.
	clients string

	// least is the function for the least of its arguments.
	least string

	// LockRows ends a SELECT that locks rows, and leaves out those that others have locked.
	LockRows string

	// untilIdle ends an UPDATE that starts a transaction, so that the server ends the transaction if
	// its process does nothing for the time of a lease.
	untilIdle string

	// ByGroup comes after the table of notifications if a statement has to use the index of groups, which
	// MariaDB leaves as soon as a column isn't in it.
	ByGroup string

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

	// steppedClients and groupedClients are the same for clients.
	steppedClients = `
WITH RECURSIVE f (client, n) AS (
  SELECT * FROM (SELECT client, 1 FROM {message} WHERE state = STATE AND client > @after ORDER BY client LIMIT 1) q
  UNION ALL
  SELECT (SELECT m.client FROM {message} m WHERE m.state = STATE AND m.client > f.client ORDER BY m.client LIMIT 1), n + 1
  FROM f WHERE f.client IS NOT NULL AND n < @limit
)`
	groupedClients = `
WITH f AS (
  SELECT client FROM {message} WHERE state = STATE AND client > @after GROUP BY state, client ORDER BY state, client LIMIT @limit
)`

	onKey     = ` ON CONFLICT (KEY) DO NOTHING`
	onWebhook = ` ON CONFLICT (client, entity) DO UPDATE SET setting = excluded.setting, failures = excluded.failures, ends = excluded.ends, reason = excluded.reason, saved = excluded.saved, state = excluded.state`

	// stillWaits guards a change: a notification that was sent again, has ended, or has the number of
	// one that was lost in a failover is another one. The sum keeps databases from reading all that
	// waits by its index.
	stillWaits = ` WHERE {message}.seq = v.n AND {message}.enqueued = v.e AND {message}.resent = v.r AND {message}.state + 0 = 0`

	setMove = `grp = v.g, due = CASE WHEN v.d > 0 THEN {now} + v.d WHEN due > {now} THEN {now} ELSE due END`
	setEnd  = `state = v.s, grp = v.g, due = {now} + v.d, attempts = v.a, status = v.c, reason = v.w`

	// maxHistory is the length of the longest history. It has room for some twenty attempts.
	maxHistory = `480`
)

var postgreSQL = &Engine{
	Engine: dialect.PostgreSQL, groups: steppedGroups, clients: steppedClients, least: `LEAST`,
	InsertOnce: `INSERT`, onConflict: onKey, replace: `INSERT`, replaced: onWebhook, LockRows: ` FOR UPDATE SKIP LOCKED`,
	untilIdle: ` AND set_config('idle_in_transaction_session_timeout', '` + strconv.FormatInt(lease.Milliseconds(), 10) + `', true) <> ''`,
	isHeld:    `seq IN (SELECT value::bigint FROM json_array_elements_text(@held::text::json))`,
	isOut:     `entity IN (SELECT decode(value, 'hex') FROM json_array_elements_text(@out::text::json))`,
	moves: `
UPDATE {message} SET ` + setMove + `
FROM json_to_recordset(@rows::text::json) AS v(n bigint, e bigint, r bigint, g bigint, d bigint)` + stillWaits,
	ends: `
UPDATE {message} SET ` + setEnd + `, history = right(history || v.h, ` + maxHistory + `)
FROM json_to_recordset(@rows::text::json) AS v(n bigint, e bigint, r bigint, s smallint, g bigint, d bigint, a integer, c integer, w text, h text)` + stillWaits,
}

var sqlite = &Engine{
	Engine: dialect.SQLite, groups: steppedGroups, clients: steppedClients, least: `MIN`,
	InsertOnce: `INSERT`, onConflict: onKey, replace: `INSERT`, replaced: onWebhook,
	isHeld: `seq IN (SELECT value FROM json_each(@held))`,
	isOut:  `hex(entity) IN (SELECT value FROM json_each(@out))`,
	moves: `
UPDATE {message} SET ` + setMove + `
FROM (SELECT json_extract(value, '$.n') AS n, json_extract(value, '$.e') AS e, json_extract(value, '$.r') AS r, json_extract(value, '$.g') AS g,
  json_extract(value, '$.d') AS d FROM json_each(@rows)) AS v` + stillWaits,
	ends: `
UPDATE {message} SET ` + setEnd + `, history = substr(history || v.h, -` + maxHistory + `)
FROM (SELECT json_extract(value, '$.n') AS n, json_extract(value, '$.e') AS e, json_extract(value, '$.r') AS r, json_extract(value, '$.s') AS s, json_extract(value, '$.g') AS g,
  json_extract(value, '$.d') AS d, json_extract(value, '$.a') AS a, json_extract(value, '$.c') AS c, json_extract(value, '$.w') AS w, json_extract(value, '$.h') AS h FROM json_each(@rows)) AS v` + stillWaits,
}

var mySQL = &Engine{
	Engine: dialect.MySQL, groups: groupedGroups, clients: groupedClients, least: `LEAST`,
	ByGroup: ` FORCE INDEX ({message}_group)`, InsertOnce: `INSERT IGNORE`, replace: `REPLACE`, LockRows: ` FOR UPDATE SKIP LOCKED`,
	isHeld: `seq IN (SELECT n FROM JSON_TABLE(@held, '$[*]' COLUMNS (n bigint PATH '$')) held)`,
	isOut:  `entity IN (SELECT UNHEX(h) FROM JSON_TABLE(@out, '$[*]' COLUMNS (h varchar(2048) CHARACTER SET ascii PATH '$')) out_)`,
	moves: `
UPDATE {message}, JSON_TABLE(@rows, '$[*]' COLUMNS (n bigint PATH '$.n', e bigint PATH '$.e', r bigint PATH '$.r', g bigint PATH '$.g', d bigint PATH '$.d')) AS v
SET ` + setMove + stillWaits,
	ends: `
UPDATE {message}, JSON_TABLE(@rows, '$[*]' COLUMNS (n bigint PATH '$.n', e bigint PATH '$.e', r bigint PATH '$.r', s integer PATH '$.s', g bigint PATH '$.g', d bigint PATH '$.d',
  a integer PATH '$.a', c integer PATH '$.c', w varchar(64) PATH '$.w', h varchar(64) PATH '$.h')) AS v
SET ` + setEnd + `, history = RIGHT(CONCAT(history, v.h), ` + maxHistory + `)` + stillWaits,
}

// EngineOf returns the engine of a dialect.
func EngineOf(d sqlstore.Dialect) (*Engine, error) {
	for _, known := range []*Engine{postgreSQL, sqlite, mySQL} {
		if known.Name == d.String() {
			return known, nil
		}
	}
	return nil, errors.New("outbox: no dialect: pass PostgreSQL, MySQL or SQLite of package sqlstore")
}

// IfNew ends an INSERT that does nothing if a row with the key exists. The key is named, so that
// PostgreSQL refuses the statement while a restore hasn't created it yet.
func (e *Engine) IfNew(key string) string { return strings.Replace(e.onConflict, "KEY", key, 1) }

// Clients starts a SELECT from f, the next @limit clients after @after with notifications in a state. How
// many they have doesn't count.
func (e *Engine) Clients(state string) string { return strings.ReplaceAll(e.clients, "STATE", state) }
