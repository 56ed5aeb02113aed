package outbox

import (
	"errors"
	"fmt"
	"strings"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/store/sqlstore"
)

// engine has what differs between databases.
type engine struct {
	dialect.Engine
	file string // of the schema

	// insertOnce and onConflict make an INSERT do nothing if a row with the KEY exists.
	// insertOnce starts the statement.
	insertOnce, onConflict string

	// clients starts a SELECT from f, the next @limit clients after @after with notifications
	// in @state. What waits for each doesn't count.
	clients string

	// compared is a condition for notifications at or after a position. COMPARED stands for >=
	// or >.
	compared string

	// lockRows ends a SELECT that locks rows, and leaves out those that others have locked.
	lockRows string

	// outcomes sets the columns of notifications from JSON.
	outcomes string

	// untilIdle ends an UPDATE that starts a transaction, so that the server ends the
	// transaction if its process does nothing for the time of a lease.
	untilIdle string

	lock string // for a migration

	advices []dialect.Advice // beyond those for all packages
}

const (
	// maxHistory is the length of the longest history. It has room for some twenty attempts.
	maxHistory = `480`

	setOutcome = `state = v.s, attempts = v.a, due = CASE WHEN v.s = 1 AND v.d = 0 THEN 0 ELSE {now} + v.d END, since = CASE WHEN v.a > {message}.attempts THEN v.w ELSE since END, status = v.c, reason = v.r`
	stillWaits = ` WHERE {message}.seq = v.n AND {message}.enqueued = v.e AND {message}.state < CASE WHEN v.s = 1 AND v.d = 0 THEN 1 ELSE 2 END`
)

const (
	// steppedClients steps through the clients by their index.
	steppedClients = `
WITH RECURSIVE f (client, n) AS (
  SELECT * FROM (SELECT client, 1 FROM {message} WHERE state = @state AND client > @after ORDER BY client LIMIT 1) q
  UNION ALL
  SELECT (SELECT m.client FROM {message} m WHERE m.state = @state AND m.client > f.client ORDER BY m.client LIMIT 1), n + 1
  FROM f WHERE f.client IS NOT NULL AND n < @limit
)`
	// groupedClients does so on databases that would read all rows at each step, but know a
	// loose index scan.
	groupedClients = `
WITH f AS (
  SELECT client FROM {message} WHERE state = @state AND client > @after GROUP BY state, client ORDER BY state, client LIMIT @limit
)`

	comparedPair = `(due, seq) COMPARED (@due, @seq)`
	// comparedEach is for databases that use no index to compare pairs.
	comparedEach = `(due > @due OR due = @due AND seq COMPARED @seq)`
)

var engines = []*engine{postgreSQL, sqlite, mySQL}

// from is a condition for notifications at or after the position @due and @seq.
func (e *engine) from() string { return strings.Replace(e.compared, "COMPARED", ">=", 1) }

// after is a condition for notifications after the position @due and @seq.
func (e *engine) after() string { return strings.Replace(e.compared, "COMPARED", ">", 1) }

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

// ifNew ends an INSERT that does nothing if a row with the key exists. The key is named, so that
// PostgreSQL refuses the statement while a restore hasn't created it yet.
func (e *engine) ifNew(key string) string { return strings.Replace(e.onConflict, "KEY", key, 1) }
