package outbox

import (
	"context"
	"errors"
	"time"
)

// trust is how long a line trusts that an entity's webhook has the same receiver. Only the
// grouping depends on it: the webhook is looked up again for each attempt.
const trust = 5 * time.Second

// route is the receiver of an entity's webhook.
type route struct {
	hostport string // "" if there's nothing to send to
	since    time.Time
	at       time.Time
	err      error // the webhook is unknown for now
}

// unrouted returns the entities of rows whose receiver must be looked up.
func (l *line) unrouted(rows []row, now time.Time) (entities []string) {
	seen := make(map[string]bool)
	for _, r := range rows {
		if at, ok := l.routes[r.entity]; (!ok || now.Sub(at.at) > trust) && !seen[r.entity] {
			seen[r.entity] = true
			entities = append(entities, r.entity)
		}
	}
	return entities
}

// forget bounds what the line remembers of entities. It's called before rows are looked up.
func (l *line) forget() {
	if len(l.routes) > maxRoutes {
		clear(l.routes)
	}
}

const maxRoutes = 4096

// route remembers the receiver of an entity's webhook.
func (l *line) route(entity, hostport string, since, now time.Time) {
	l.routes[entity] = route{hostport: hostport, since: since, at: now}
}

var errUnavailable = errors.New("outbox: the webhooks of the client can't be looked up")

// lookUp finds the receivers of rows.
func (d *drain) lookUp(ctx context.Context, rows []row) bool {
	d.mu.Lock()
	d.line.forget()
	entities := d.line.unrouted(rows, time.Now())
	d.mu.Unlock()
	for _, entity := range entities {
		to := contain(d.process.Outbox, func() (to route) {
			to.hostport, to.since, to.err = d.process.sender.Lookup(ctx, d.line.client, entity)
			return to
		}, route{}) // the attempt says why
		if to.err != nil {
			return false
		}
		to.at = time.Now()
		d.mu.Lock()
		d.line.routes[entity] = to
		d.mu.Unlock()
	}
	return true
}
