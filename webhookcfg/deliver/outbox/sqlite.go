package outbox

import "example.com/go-webhookcfg/internal/dialect"

const jsonOutcome = `json_extract(value, '$.n') AS n, json_extract(value, '$.e') AS e, json_extract(value, '$.s') AS s, json_extract(value, '$.a') AS a, json_extract(value, '$.d') AS d, json_extract(value, '$.c') AS c, json_extract(value, '$.r') AS r, json_extract(value, '$.w') AS w, json_extract(value, '$.h') AS h`

var sqlite = &engine{
	Engine: dialect.SQLite, clients: steppedClients, compared: comparedPair, file: "schema/sqlite.sql",
	insertOnce: `INSERT`, onConflict: ` ON CONFLICT (KEY) DO NOTHING`,
	outcomes: `
UPDATE {message} SET ` + setOutcome + `, history = substr(history || v.h, -` + maxHistory + `)
FROM (SELECT ` + jsonOutcome + ` FROM json_each(@rows)) AS v` + stillWaits,
}
