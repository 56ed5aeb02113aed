package outbox

import (
	"context"
	"maps"
	"slices"
	"time"
)

const (
	// trust is how long a line trusts that an entity's webhook has the same receiver. Only the
	// grouping depends on it: the webhook is looked up again for each attempt.
	trust = 5 * time.Second
	// lookupTimeout is for the lookup of one webhook.
	lookupTimeout = 5 * time.Second

	// After a failure on our side, for example of the keys, an entity waits for firstDelay, and
	// then for twice as long after each further failure.
	firstDelay = time.Second
	maxDelay   = 30 * time.Second
	// After maxFailures in a row, and none of the client's entities works, all wait for about
	// stopFor.
	maxFailures = 8
	stopFor     = time.Second

	maxRoutes = 4096
)

// route is the receiver of an entity's webhook.
type route struct {
	hostport string // "" if there's nothing to send to
	since    time.Time
	at       time.Time

	// After a failure on our side, the route leads to a receiver that only this entity has, and
	// that is blocked.
	delay time.Duration // how long, the last time; zero after a success
	until time.Time     // zero: it leads to the webhook's receiver
}

// unrouted returns the entities of rows whose receiver must be looked up.
func (l *line) unrouted(rows []row, now time.Time) (entities []string) {
	seen := make(map[string]bool)
	for _, r := range rows {
		at, ok := l.routes[r.entity]
		isKnown := ok && now.Sub(at.at) <= trust
		if ok && !at.until.IsZero() {
			isKnown = now.Before(at.until)
		}
		if !isKnown && !seen[r.entity] {
			seen[r.entity] = true
			entities = append(entities, r.entity)
		}
	}
	return entities
}

// forget bounds what the line remembers of entities. It's called before rows are looked up.
func (l *line) forget() {
	if len(l.routes) > maxRoutes {
		maps.DeleteFunc(l.routes, func(_ string, to route) bool { return to.delay == 0 })
	}
}

// route remembers the receiver of an entity's webhook.
func (l *line) route(entity, hostport string, since, now time.Time) {
	was := l.routes[entity]
	l.routes[entity] = route{hostport: hostport, since: since, at: now, delay: was.delay}
	r := l.receivers[was.hostport]
	if was.hostport == hostport || r == nil {
		return
	}
	// What waits at the former one comes before what is enqueued from here on.
	for zone, s := range r.skipped {
		if s == nil {
			continue
		}
		l.receiver(l.routes[entity]).skip(*s)
		if r.isFailing {
			r.skipped[zone] = nil
		}
	}
	l.settle(r, now)
}

// fails makes an entity wait after a failure on our side. Others go on, unless all fail, which
// it reports.
func (l *line) fails(entity string, now time.Time) (all bool) {
	to := l.routes[entity]
	to.delay = min(max(2*to.delay, firstDelay), maxDelay)
	to.until = now.Add(jitter(to.delay))
	to.hostport = " " + entity // no host has a blank
	l.routes[entity] = to
	l.failures++
	if all = l.failures >= maxFailures && now.Sub(l.worked) > stopFor; all {
		l.failures = 0
		l.resume = now.Add(jitter(stopFor))
	}
	return all
}

// works says that an entity's webhook was looked up, or even that an attempt was made.
func (l *line) works(entity string, isAttempt bool, now time.Time) {
	l.failures, l.worked = 0, now
	if to, ok := l.routes[entity]; ok && isAttempt {
		to.delay = 0
		l.routes[entity] = to
	}
}

// lookUp finds the receivers of rows. It returns those whose receiver is known now: if
// too many lookups fail, they are the first ones.
func (d *drain) lookUp(ctx context.Context, rows []row) []row {
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.line
	l.forget()
	entities := l.unrouted(rows, time.Now())
	for i, entity := range entities {
		d.mu.Unlock()
		hostport, since, err := d.process.lookUp(ctx, l.client, entity)
		d.mu.Lock()
		if err == nil {
			now := time.Now()
			l.works(entity, false, now)
			l.route(entity, hostport, since, now)
			continue
		}
		if l.fails(entity, time.Now()) {
			others := entities[i+1:]
			if n := slices.IndexFunc(rows, func(r row) bool { return slices.Contains(others, r.entity) }); n >= 0 {
				return rows[:n]
			}
		}
	}
	return rows
}

// lookUp finds the receiver of an entity's webhook.
func (p *process) lookUp(ctx context.Context, client, entity string) (hostport string, since time.Time, err error) {
	call, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	err = contain(p.Outbox, func() (err error) {
		hostport, since, err = p.sender.Lookup(call, client, entity)
		return err
	}, errPanicked)
	p.warnOfHost(ctx, client, entity, err)
	return hostport, since, err
}
