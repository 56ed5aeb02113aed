package outbox

import (
	"strconv"

	"example.com/go-webhookcfg/internal/dialect"
)

var postgreSQL = &engine{
	Engine: dialect.PostgreSQL, clients: steppedClients, compared: comparedPair, file: "schema/postgresql.sql",
	insertOnce: `INSERT`, onConflict: ` ON CONFLICT (KEY) DO NOTHING`,
	lockRows: ` FOR UPDATE SKIP LOCKED`,
	outcomes: `
UPDATE {message} SET ` + setOutcome + `, history = right(history || v.h, ` + maxHistory + `)
FROM json_to_recordset(@rows::text::json) AS v(n bigint, e bigint, s smallint, a integer, d bigint, c integer, r text, w bigint, h text)` + stillWaits,
	untilIdle: ` AND set_config('idle_in_transaction_session_timeout', '` + strconv.FormatInt(lease.Milliseconds(), 10) + `', true) <> ''`,
	lock:      `SELECT pg_advisory_xact_lock(hashtext('{message}'))`,
}
