package outbox

import "example.com/go-webhookcfg/internal/dialect"

var mySQL = &engine{
	Engine: dialect.MySQL, clients: groupedClients, compared: comparedEach, file: "schema/mysql.sql",
	insertOnce: `INSERT IGNORE`,
	lockRows:   ` FOR UPDATE SKIP LOCKED`,
	outcomes: `
UPDATE {message}, JSON_TABLE(@rows, '$[*]' COLUMNS (n bigint PATH '$.n', e bigint PATH '$.e', s integer PATH '$.s', a integer PATH '$.a',
  d bigint PATH '$.d', c integer PATH '$.c', r varchar(64) PATH '$.r', w bigint PATH '$.w', h varchar(64) PATH '$.h')) AS v
SET since = CASE WHEN v.a > {message}.attempts THEN v.w ELSE since END, state = v.s, attempts = v.a,
  due = CASE WHEN v.s = 1 AND v.d = 0 THEN 0 ELSE {now} + v.d END, status = v.c, reason = v.r, history = RIGHT(CONCAT(history, v.h), ` + maxHistory + `)` + stillWaits,
	// MySQL has no such variable, and takes what's in a comment of MariaDB for a comment.
	advices: []dialect.Advice{{
		When: `/*M! @@session.idle_write_transaction_timeout NOT BETWEEN 1 AND 5 OR */ 1 = 0`,
		Text: "others can't go on with the clients of a process that froze in a transaction: set idle_write_transaction_timeout to 4 in the DSN; this ends all transactions of this pool that idle for longer, also yours: if yours do, give the store and Run a pool of their own",
	}},
}
