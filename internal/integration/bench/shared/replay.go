package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"sync"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// replay sends the statements that a store sends, one for one, with nothing around
// them but package database/sql. They were recorded, so that they are always the same.
type replay struct {
	db     *sql.DB
	sets   []statement
	lookup statement
	turn   *sync.Mutex // held by who writes, where one at a time can; else nil
}

// sample is what was recorded. Its parameters are told from each other by their values.
var sample = timed(webhookcfg.Set("the client", webhookcfg.Entity("the entity"), egress.NewURL("https://the.url.example.com/")))

func newReplay(ctx context.Context, db *sql.DB, dialect sqlstore.Dialect, prefix string) (*replay, error) {
	sets, err := record(dialect, prefix, func(st *sqlstore.Store) error { return st.Apply(ctx, sample) })
	if err != nil {
		return nil, err
	}
	lookups, err := record(dialect, prefix, func(st *sqlstore.Store) error {
		_, err := st.Resolve(ctx, sample.Client, sample.Scope.Entity())
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(lookups) != 1 {
		return nil, fmt.Errorf("a resolve takes %d statements, and not one", len(lookups))
	}
	r := &replay{db: db, sets: sets, lookup: lookups[0]}
	if dialect == sqlstore.SQLite() {
		r.turn = new(sync.Mutex)
	}
	return r, nil
}

// with returns the arguments of the statement for another change. A number that is
// not of the sample is the mark, which is one of chance.
func (s statement) with(c webhookcfg.Change) []any {
	args := make([]any, len(s.args))
	for i, arg := range s.args {
		switch value := arg.(type) {
		case []byte:
			args[i] = bytesWith(value, c)
		case int64:
			args[i] = rand.Int64()
			if value == sample.Time.Unix() {
				args[i] = c.Time.Unix()
			}
		default:
			args[i] = arg
		}
	}
	return args
}

func bytesWith(value []byte, c webhookcfg.Change) []byte {
	switch string(value) {
	case sample.Client:
		return []byte(c.Client)
	case sample.Scope.Entity():
		return []byte(c.Scope.Entity())
	case sample.URL.Reveal():
		return []byte(c.URL.Reveal())
	}
	return value
}

// set tries again what others kept from happening, whatever the error.
func (r *replay) set(ctx context.Context, c webhookcfg.Change) (err error) {
	if r.turn != nil {
		r.turn.Lock()
		defer r.turn.Unlock()
	}
	for range 10 {
		if err = r.try(ctx, c); err == nil {
			return nil
		}
	}
	return err
}

func (r *replay) try(ctx context.Context, c webhookcfg.Change) error {
	conn, err := r.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for _, s := range r.sets {
		if _, err := conn.ExecContext(ctx, s.text, s.with(c)...); err != nil {
			_, _ = conn.ExecContext(ctx, "rollback") // an error says that it was
			return err
		}
	}
	return nil
}

func (r *replay) url(ctx context.Context, client, entity string) (string, error) {
	key := webhookcfg.Set(client, webhookcfg.Entity(entity), egress.URL{})
	rows, err := r.db.QueryContext(ctx, r.lookup.text, r.lookup.with(key)...)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	var (
		base, override  []byte
		since           int64
		overriddenSince sql.NullInt64
	)
	for rows.Next() {
		if err := rows.Scan(&base, &since, &override, &overriddenSince); err != nil {
			return "", err
		}
	}
	if overriddenSince.Valid {
		return string(override), rows.Err()
	}
	return string(base), rows.Err()
}
