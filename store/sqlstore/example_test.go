package sqlstore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
)

// A service opens the database with a driver of its choice, creates the tables, and
// sweeps obsolete rows every few minutes.
func Example() {
	// import _ "github.com/jackc/pgx/v5/stdlib"
	serve := func(ctx context.Context, dsn string, verifier webhookcfg.CredentialVerifier) error {
		db, err := sql.Open("pgx", dsn)
		if err != nil {
			return err
		}
		defer db.Close()
		db.SetMaxOpenConns(20)

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

		every := time.NewTicker(5 * time.Minute)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				if _, err := st.Sweep(ctx, 100_000); err != nil {
					slog.Warn("sweep", "error", err)
				}
			case <-ctx.Done():
				return nil
			}
		}
	}
	_ = serve
}

// A feed is available for dialects that number changes in commit order.
func ExampleStore_WithFeed() {
	for _, dialect := range []sqlstore.Dialect{sqlstore.PostgreSQL(), sqlstore.MySQL()} {
		db := sql.OpenDB(&fake{}) // stands for sql.Open
		defer db.Close()
		st, err := sqlstore.New(db, dialect, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		_, err = st.WithFeed()
		fmt.Println(dialect, errors.Is(err, errors.ErrUnsupported))
	}
	// Output:
	// PostgreSQL false
	// MySQL true
}

// A separate migration tool can run the statements of the schema.
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
