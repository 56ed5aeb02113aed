package outbox_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"strings"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/portal"
)

// Run sends until its context ends, in any number of processes. After a client has set a
// webhook, Changed sends at once what waits for it. After a test from the page that succeeds, it
// ends the pause of the webhook.
func Example() {
	// import _ "github.com/jackc/pgx/v5/stdlib"
	send := func(ctx context.Context, db *sql.DB, webhooks webhookcfg.Store, keys deliver.Keys) error {
		var box *outbox.Outbox
		health, err := deliver.NewHealth(nil, &deliver.HealthOptions{
			OnChange: func(_ context.Context, client string, scope webhookcfg.Scope, _, after webhookcfg.DeliveryStatus) {
				if after.State == "ok" {
					box.Changed(client, scope)
				}
			},
		})
		if err != nil {
			return err
		}
		sender, err := deliver.New(webhooks, keys, &deliver.Options{Health: health})
		if err != nil {
			return err
		}
		box, err = outbox.New(db, sqlstore.PostgreSQL(), sender, &outbox.Options{Logger: slog.Default()})
		if err != nil {
			return err
		}
		if err := box.Migrate(ctx); err != nil {
			return err
		}
		portalOptions := portal.Options{Notifications: box} // clients see and send again what is theirs
		_ = portalOptions                                   // for portal.New
		handlerOptions := webhookcfg.Options{
			DeliveryStatus: health.Status,
			OnEvent: func(_ context.Context, e webhookcfg.Event) {
				if (e.Operation == "set" || e.Operation == "unset") && e.Status == http.StatusOK {
					box.Changed(e.Client, e.Scope)
				}
			},
		}
		_ = handlerOptions // for webhookcfg.NewHandler
		return box.Run(ctx)
	}
	_ = send
}

// Enqueue in the transaction of the change that the notification is about. Either both happen,
// or neither does.
func ExampleOutbox_Enqueue() {
	publish := func(ctx context.Context, db *sql.DB, box *outbox.Outbox, client, module string, version int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, "UPDATE modules SET version = $1 WHERE id = $2", version, module); err != nil {
			return err
		}
		err = box.Enqueue(ctx, tx, outbox.Notification{
			Client: client, Entity: module,
			Message: deliver.Message{
				ID:   deliver.MessageID(client, module, fmt.Sprint(version)),
				Body: fmt.Appendf(nil, `{"type":"module.updated","module":%q,"version":%d}`, module, version),
			},
		})
		if err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		box.Committed(client)
		return nil
	}
	_ = publish
}

// With pgx or an ORM, execute the statement yourself.
func ExampleOutbox_Statement() {
	box, err := outbox.New(new(sql.DB), sqlstore.PostgreSQL(), nil, nil) // your database handle
	if err != nil {
		log.Fatal(err)
	}
	query, args, err := box.Statement(outbox.Notification{
		Client: "acme", Entity: "m1",
		Message: deliver.Message{ID: "m1_17", Body: []byte(`{"type":"module.updated"}`)},
	})
	if err != nil {
		log.Fatal(err)
	}
	// _, err = tx.Exec(ctx, query, args...) // tx is a pgx.Tx
	fmt.Println(strings.Fields(query)[:3], len(args), "arguments")

	// What can't be enqueued is found here.
	_, _, err = box.Statement(outbox.Notification{Client: "acme"})
	fmt.Println(err)
	// Output:
	// [INSERT INTO wh_outbox_message] 5 arguments
	// outbox: invalid notification: the entity has 0 bytes, want 1 to 1024
}

// Give the statements to your own migration tool.
func ExampleSchema() {
	statements, err := outbox.Schema(sqlstore.PostgreSQL(), "hooks_")
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range statements {
		if table, found := strings.CutPrefix(s, "CREATE TABLE IF NOT EXISTS "); found {
			fmt.Println(strings.Fields(table)[0])
		}
	}
	// Output:
	// hooks_outbox_schema
	// hooks_outbox_message
	// hooks_outbox_line
	// hooks_outbox_pause
	// hooks_outbox_mark
	// hooks_outbox_process
	// hooks_outbox_again
}
