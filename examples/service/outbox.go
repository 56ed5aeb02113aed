package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// module is an entity of this service: what its clients want to be notified of.
type module struct {
	client, id, state string
}

// The statements have the same text for both databases.
const (
	createModules = `CREATE TABLE IF NOT EXISTS modules (
	client text NOT NULL, id text NOT NULL, state text NOT NULL, version bigint NOT NULL,
	PRIMARY KEY (client, id))`
	updateModule = `INSERT INTO modules (client, id, state, version) VALUES ($1, $2, $3, 1)
ON CONFLICT (client, id) DO UPDATE SET state = excluded.state, version = modules.version + 1 RETURNING version`
	findModule = `SELECT count(*) FROM modules WHERE client = $1 AND id = $2`
)

// outbox changes modules.
type outbox interface {
	// update changes a module and enqueues its notification in one transaction: if it
	// returns nil, both are durable, and if the process is killed before, there is neither
	// or, if only the response was lost, both.
	update(ctx context.Context, m module) (version int64, err error)
}

// notification is an entry of the queue. It has no URL and no key, so that what waits
// follows every set, unset and rotation.
type notification struct {
	Client  string          `json:"client"`
	Entity  string          `json:"entity"`
	Message deliver.Message `json:"message"`

	delay time.Duration // until the next attempt; see worker
}

// Kind implements [river.JobArgs].
func (notification) Kind() string { return "notification" }

// changed returns the notification of a change. Its body is thin: a receiver fetches the
// state if it wants it, and ignores a version below one that it has, since notifications
// may arrive twice or out of order.
func (m module) changed(version int64) notification {
	body, err := json.Marshal(map[string]any{
		"type": "module.updated",
		"data": map[string]any{"id": m.id, "version": version},
	})
	if err != nil {
		panic(err) // strings and numbers have a JSON form
	}
	// One change has one ID, even if it is enqueued twice.
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", m.client, m.id, version))
	return notification{
		Client:  m.client,
		Entity:  m.id,
		Message: deliver.Message{ID: "msg_" + hex.EncodeToString(sum[:16]), Body: body},
	}
}
