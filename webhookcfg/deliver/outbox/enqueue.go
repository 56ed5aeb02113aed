package outbox

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
)

// Execer is what [Outbox.Enqueue] needs of a transaction. A [*sql.Tx] is one, and so are a
// [*sql.Conn] with a transaction and a [*sql.DB].
type Execer interface {
	// ExecContext is that of [*sql.Tx].
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Enqueue adds a notification in your transaction. It's sent once the transaction has been
// committed, and never if it's rolled back. It's a single INSERT, and transactions never wait
// for each other, unless they enqueue the same ID for the same client.
//
// The order of an entity's notifications is that of their INSERTs, if their transactions come one
// after another. They do if each first changes the entity's row.
//
// Call [Outbox.Committed] after the commit. Otherwise the notification leaves a few
// milliseconds later.
//
// The error wraps [ErrInvalid], or is the driver's. On PostgreSQL, a transaction is no longer
// usable after an error of the driver.
func (o *Outbox) Enqueue(ctx context.Context, tx Execer, n Notification) error {
	query, args, err := o.Statement(n)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, query, args...); err != nil {
		return fmt.Errorf("outbox: enqueue: %w", err)
	}
	o.queue.Expect(n.Client)
	return nil
}

// Statement returns the INSERT of [Outbox.Enqueue] and its arguments, for transactions that
// aren't [Execer]s, for example those of pgx or of an ORM. The placeholders are those of the
// dialect: $1, $2, … or ?.
func (o *Outbox) Statement(n Notification) (query string, args []any, err error) {
	if n.Message.ID == "" {
		n.Message.ID = "msg_" + rand.Text()
	}
	if err := o.validate(n); err != nil {
		return "", nil, err
	}
	if n.Message.Body == nil {
		n.Message.Body = []byte{} // nil would be NULL
	}
	query, args = o.tables.insert(n)
	return query, args, nil
}

// Committed says that notifications of clients have been committed, so that they are sent at
// once if [Outbox.Run] runs in this process. It never blocks. Without it, or if another
// process sends them, they're found a few milliseconds later, or up to 150 milliseconds if
// nothing was enqueued for a while.
func (o *Outbox) Committed(clients ...string) { o.queue.Committed(clients...) }

const insertMessage = ` INTO {message} (client, entity, id, enqueued, content_type, body) VALUES (@client, @entity, @id, {now}, @type, @body)`

func (t *tables) insert(n Notification) (string, []any) {
	s := t.Statement(t.Engine.InsertOnce + insertMessage + t.Engine.IfNew("client, id"))
	return s.Text, s.Args(values{
		"client": []byte(n.Client), "entity": []byte(n.Entity), "id": n.Message.ID,
		"type": n.Message.ContentType, "body": n.Message.Body,
	})
}
