package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// Open the database with your driver, create the tables, and sweep every few minutes.
func Example() {
	// import _ "github.com/jackc/pgx/v5/stdlib"
	serve := func(ctx context.Context, dsn string, verifier webhookcfg.CredentialVerifier) error {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		db.SetMaxOpenConns(20)
		db.SetMaxIdleConns(20)

		st, err := sqlstore.New(db, sqlstore.PostgreSQL(), &sqlstore.Options{Logger: slog.Default()})
		if err != nil {
			return err
		}
		if err := st.Migrate(ctx); err != nil {
			return err
		}
		h, err := webhookcfg.NewHandler(st, verifier, nil)
		if err != nil {
			return err
		}
		_ = h // mount it on the server

		st.SweepEvery(ctx, 5*time.Minute)
		return nil
	}
	_ = serve
}

// If your process sends notifications, let it read from a copy. The copy polls the store's
// feed, or its versions if the dialect has no feed.
func Example_sender() {
	send := func(ctx context.Context, st *sqlstore.Store, client, entity string) error {
		copied, err := cache.New(st, &cache.Options{MaxStale: 2 * time.Second})
		if err != nil {
			return err
		}
		defer copied.Close()
		hook, err := copied.Resolve(ctx, client, entity)
		_ = hook // send to hook.URL, unless it is zero
		return err
	}
	_ = send
}

var tooMany = webhookcfg.Refusal{Code: "too_many_overrides", Description: "Your plan allows 500 entities with webhooks of their own"}

// limited is a store in PostgreSQL whose tables have the trigger in limit/postgresql.sql.
type limited struct{ *sqlstore.Store }

// Apply tells the handler which errors are refusals. The drivers have the server's code: see
// the comment in the file for your database.
func (l limited) Apply(ctx context.Context, c webhookcfg.Change) error {
	err := l.Store.Apply(ctx, c)
	state, ok := errors.AsType[interface {
		error
		SQLState() string
	}](err)
	if ok && state.SQLState() == "WH001" {
		return tooMany
	}
	return err
}

// A trigger limits how many overrides a client can have. It counts in the transaction of the
// change, which holds the lock on the client, so the limit also holds for concurrent changes
// from several processes.
func Example_limit() {
	serve := func(st *sqlstore.Store, verifier webhookcfg.CredentialVerifier) (http.Handler, error) {
		return webhookcfg.NewHandler(limited{st}, verifier, &webhookcfg.Options{
			Refusals: []webhookcfg.Refusal{tooMany},
		})
	}
	_ = serve
}

// You can run the statements of the schema with your own migration tool.
func ExampleDialect_Schema() {
	statements, err := sqlstore.SQLite().Schema("hooks_")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(statements[2])
	// Output:
	// CREATE INDEX IF NOT EXISTS hooks_client_chg ON hooks_client (chg)
}
