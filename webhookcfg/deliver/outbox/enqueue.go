package outbox

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"time"
)

// Execer is what [Outbox.Enqueue] needs of a transaction. A [*sql.Tx] is one, and so are a
// [*sql.Conn] with a transaction and a [*sql.DB].
type Execer interface {
	// ExecContext is that of [*sql.Tx].
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

const maxExpected = 1000

// Enqueue adds a notification in your transaction. It's sent once the transaction has been
// committed, and never if it's rolled back. It's a single INSERT, and transactions never wait
// for each other, unless they enqueue the same ID for the same client.
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
	o.expect(n.Client)
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
func (o *Outbox) Committed(clients ...string) {
	o.mu.Lock()
	p := o.process
	for _, client := range clients {
		delete(o.expected, client)
	}
	o.mu.Unlock()
	if p != nil {
		p.hint(clients)
	}
}

// expect makes Run look for a client's notification soon, since it's probably committed soon.
func (o *Outbox) expect(client string) {
	o.mu.Lock()
	if o.process != nil && len(o.expected) < maxExpected {
		o.expected[client] = time.Now()
	}
	o.mu.Unlock()
	signal(o.enqueuing)
}

// expects returns how long ago the last notification was enqueued whose commit we may not
// have seen.
func (o *Outbox) expects(now time.Time) (ago time.Duration, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for client, at := range o.expected {
		if now.Sub(at) > expectFor {
			delete(o.expected, client)
		} else if !ok || now.Sub(at) < ago {
			ago, ok = now.Sub(at), true
		}
	}
	return ago, ok
}

func (t *tables) insert(n Notification) (string, []any) {
	s := t.queries.insert
	return s.Text, s.Args(values{
		"client": []byte(n.Client), "entity": []byte(n.Entity), "id": n.Message.ID,
		"type": n.Message.ContentType, "body": n.Message.Body,
	})
}
