package outbox

import (
	"database/sql"
	"fmt"
	"sync/atomic"

	"example.com/go-webhookcfg/internal/dialect"
	"example.com/go-webhookcfg/internal/healthcheck"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

// tables are those of the queue in a database.
type tables struct {
	*queue.Tables
	names  []string // that of the schema first
	health healthcheck.Check
	fitted atomic.Bool // a check has succeeded
}

type (
	conn   = queue.Conn
	values = dialect.Values
)

func newTables(db *sql.DB, d sqlstore.Dialect, prefix string) (*tables, error) {
	prefix, err := tablePrefix(prefix)
	if err != nil {
		return nil, err
	}
	base, err := queue.NewTables(db, d, prefix)
	if err != nil {
		return nil, err
	}
	schema, err := schemaOf(base.Engine, prefix)
	if err != nil {
		return nil, err
	}
	return &tables{Tables: base, names: dialect.Created(schema)}, nil
}

func tablePrefix(prefix string) (string, error) {
	prefix, err := dialect.Prefix(prefix)
	if err != nil {
		return "", fmt.Errorf("outbox: %w", err)
	}
	return prefix, nil
}
