package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"math/rand/v2"
	"time"
)

// grace is how long it may take to clean up, or to find out what became of a change,
// though the context has ended.
const grace = 500 * time.Millisecond

// settle reports whether a change of which nobody knows turns out to have been made.
// Its first statement waits for the end of that transaction, and its second finds the
// mark which that has left, if it came to an end and no other came since. The second
// also replaces it: a commit that has something to write is answered only when what was
// written before it is as safe, such as on a standby that the other did not wait for.
func (s *Store) settle(ctx context.Context, v values) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	v["next"] = rand.Int64()
	rows, err := s.write(ctx, s.queries.settle, v)
	return err == nil && rows == 1
}

// release ends what a connection holds, also when ctx has ended. A connection that
// cannot be freed of it must not go back to the pool.
func release(ctx context.Context, conn *sql.Conn, statement string, args ...any) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if _, err := conn.ExecContext(ctx, statement, args...); err != nil {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn })
	}
}
