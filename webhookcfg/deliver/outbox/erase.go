package outbox

import (
	"context"
	"database/sql"
	"fmt"
	"time"
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
		if _, err := exec(ctx, t.db, t.compile(`DELETE FROM {again} WHERE client = @client`), values{"client": []byte(client)}); err != nil {
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
		isForgotten, err = t.forget(ctx, client, time.Since(asked) > 2*lease)
		if err != nil {
			return n, err
		}
		if !isForgotten && !wait(ctx, eraseWait) {
			return n, ctx.Err()
		}
	}
}

// forget removes the line of a client. If a process has it, forget asks the process to drop what's
// in its memory and to remove the line, unless the process is dead. It reports whether there's no
// line.
func (t *tables) forget(ctx context.Context, client string, isDead bool) (isForgotten bool, err error) {
	v := values{"client": []byte(client), "erased": erased}
	remove := `DELETE FROM {line} WHERE client = @client`
	if !isDead {
		remove += ` AND owner = 0`
	}
	if _, err := exec(ctx, t.db, t.compile(remove), v); err != nil {
		return false, err
	}
	if _, err := exec(ctx, t.db, t.compile(`UPDATE {line} SET due = @erased, pauses = '' WHERE client = @client`), v); err != nil {
		return false, err
	}
	isForgotten = true
	err = query(ctx, t.db, t.compile(`SELECT 1 FROM {line} WHERE client = @client`), v, func(*sql.Rows) error { isForgotten = false; return nil })
	return isForgotten, err
}

// eraseWait is how long a process has to forget a client before it's asked again.
const eraseWait = 50 * time.Millisecond

// forget drops what the line has in memory, since its client is being erased. Attempts under way
// complete.
func (d *drain) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.returned {
		return
	}
	d.returned, d.stopped = true, true
	d.process.writer.update(lineUpdate{client: d.line.client, forget: true, drain: d})
	signal(d.kick)
}

// eraseStates removes what it finds of a client in each state, in the order in which attempts
// take notifications through them. It reports whether it found any, and how many it removed.
func (t *tables) eraseStates(ctx context.Context, client string) (isFound bool, n int, err error) {
	find := t.compile(`SELECT seq FROM {message} WHERE state = @state AND client = @client ORDER BY due, seq LIMIT 500`)
	for state := stateFresh; state <= stateDropped; {
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
