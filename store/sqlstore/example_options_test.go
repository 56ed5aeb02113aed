package sqlstore_test

import (
	"database/sql"
	"errors"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
)

// errNotSent stands for an error of your driver or of a proxy in front of your database.
var errNotSent = errors.New("no connection became free")

// The comments say when you'd set each option. Leave the others at their defaults.
func ExampleOptions() {
	serve := func(db *sql.DB) (*sqlstore.Store, error) {
		return sqlstore.New(db, sqlstore.PostgreSQL(), &sqlstore.Options{
			// Your database has other tables that start with wh_.
			Prefix: "hooks_",
			// Your driver has an error of its own for statements that it never sent.
			Retryable: func(err error) bool { return errors.Is(err, errNotSent) },
		})
	}
	send := func(standby *sql.DB) (*sqlstore.Store, error) {
		return sqlstore.New(standby, sqlstore.PostgreSQL(), &sqlstore.Options{
			Prefix: "hooks_",
			// This process only sends, and spares the primary. It can use webhooks that are
			// up to ten seconds older, and the primary commits something at least that often.
			StandbyLag: 10 * time.Second,
		})
	}
	_, _ = serve, send
}
