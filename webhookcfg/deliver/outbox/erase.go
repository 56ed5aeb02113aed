package outbox

import (
	"context"
	"fmt"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

// Erase removes everything about a client from the tables: its notifications, sent or not,
// and its pauses. It deletes in batches, and returns how many notifications it deleted. It waits
// until the process that has the client has forgotten it, too, a fraction of a second as a rule.
// Attempts under way complete, and a [deliver.HealthStore] can get their outcome afterwards. Stop
// enqueueing for the client first. A transaction that commits later, or a backup that you restore,
// brings notifications back, so call Erase again then.
func (o *Outbox) Erase(ctx context.Context, client string) (n int, err error) {
	n, err = o.tables.erase(ctx, client)
	if err != nil {
		return n, fmt.Errorf("outbox: erase: %w", err)
	}
	return n, nil
}

func (t *tables) erase(ctx context.Context, client string) (n int, err error) {
	asked := time.Now()
	for isForgotten := false; ; {
		// First, so that no send again under way takes notifications past the states that we look
		// at. The client can start another one, so we look until there's nothing left.
		if _, err := t.Exec(ctx, t.DB, `DELETE FROM {again} WHERE client = @client`, values{"client": []byte(client)}); err != nil {
			return n, err
		}
		found, deleted, err := t.eraseStates(ctx, client)
		n += deleted
		switch {
		case err != nil:
			return n, err
		case found:
			asked = time.Now()
		case isForgotten:
			return n, nil
		}
		isForgotten, err = t.Forget(ctx, client, time.Since(asked) > forgetWithin)
		if err != nil {
			return n, err
		}
		if !isForgotten && !queue.Wait(ctx, eraseWait) {
			return n, ctx.Err()
		}
	}
}

const (
	// eraseWait is how long a process has to forget a client before it's asked again.
	eraseWait = 50 * time.Millisecond
	// forgetWithin is how long a process that lives needs at most. It's longer than its lease.
	forgetWithin = 7 * time.Second
)

// eraseStates removes what it finds of a client in each state, in the order in which attempts
// take notifications through them. It reports whether it found any, and how many it removed.
func (t *tables) eraseStates(ctx context.Context, client string) (isFound bool, n int, err error) {
	const find = `SELECT seq FROM {message} WHERE state = @state AND client = @client ORDER BY grp, due, seq LIMIT 500`
	for state := queue.Waiting; state <= queue.Dropped; {
		found, deleted, err := t.remove500(ctx, find, values{"state": state, "client": []byte(client)})
		n += int(deleted)
		if err != nil {
			return true, n, err
		}
		if found == 0 {
			state++
		}
		isFound = isFound || found > 0
	}
	return isFound, n, nil
}
