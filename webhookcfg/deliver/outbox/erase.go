package outbox

import (
	"context"
	"fmt"
)

// Erase removes everything about a client from the tables: its notifications, sent or not,
// and its pauses. It deletes in batches, and returns how many notifications it deleted.
// Attempts under way complete. Stop enqueueing for the client first.
func (o *Outbox) Erase(ctx context.Context, client string) (n int, err error) {
	n, err = o.tables.erase(ctx, client)
	if err != nil {
		return n, fmt.Errorf("outbox: erase: %w", err)
	}
	return n, nil
}

func (t *tables) erase(ctx context.Context, client string) (n int, err error) {
	for {
		// First, so that no send again under way takes notifications past the states that we look
		// at. The client can start another one, so we look until there's nothing left.
		if _, err := exec(ctx, t.db, t.compile(`DELETE FROM {again} WHERE client = @client`), values{"client": []byte(client)}); err != nil {
			return n, err
		}
		deleted, err := t.eraseStates(ctx, client)
		n += deleted
		if err != nil {
			return n, err
		}
		if deleted == 0 {
			break
		}
	}
	_, err = exec(ctx, t.db, t.compile(`DELETE FROM {line} WHERE client = @client AND owner = 0`), values{"client": []byte(client)})
	return n, err
}

// eraseStates removes what it finds of a client in each state, in the order in which attempts
// take notifications through them.
func (t *tables) eraseStates(ctx context.Context, client string) (n int, err error) {
	find := t.compile(`SELECT seq FROM {message} WHERE state = @state AND client = @client LIMIT 500`)
	for state := stateFresh; state <= stateDropped; {
		deleted, err := t.remove500(ctx, find, values{"state": state, "client": []byte(client)})
		n += deleted
		if err != nil {
			return n, err
		}
		if deleted == 0 {
			state++
		}
	}
	return n, nil
}
