package outbox

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"
)

// staleness is how long the sender's view of the webhooks may lag after a wake.
const staleness = 15 * time.Second

// Changed says that a client's webhook was set or unset, or that a receiver works again. What
// waits for the client is then sent at once, wherever its webhook now leads: pauses end if the
// webhook was set since, and retries are due. It's one small write, whatever waits, and reaches
// the process that has the client within a fraction of a second. That process then reads on the
// side, 512 notifications at a time, all that waits for the client, because any of it may lead
// elsewhere now. If a client with a backlog sets its webhook again and again, that takes a tenth of
// the time at most: each time the receivers go on at once with what was found before, and the rest,
// such as retries that aren't due, follows within a minute.
//
// If the sender reads webhooks from a copy, such as one of package
// [example.com/go-webhookcfg/store/cache], the copy must know of the change within 15 seconds
// ([example.com/go-webhookcfg/store/cache.Options.MaxStale]). What it learns later is only sent
// when it's due.
//
// Changed returns at once. It writes on the side, for half a minute at most, so no request has
// to wait for it. If that fails, the log says so, and what waits is sent when it's due. Call it
// from [webhookcfg.Options.OnEvent]:
//
//	OnEvent: func(_ context.Context, e webhookcfg.Event) {
//		if (e.Operation == "set" || e.Operation == "unset") && e.Status == http.StatusOK {
//			box.Changed(e.Client)
//		}
//	},
func (o *Outbox) Changed(client string) {
	o.mu.Lock()
	_, known := o.changed[client]
	isFull := !known && len(o.changed) >= maxChanged
	if !isFull {
		o.changed[client] = struct{}{}
	}
	start := !isFull && !o.waking
	o.waking = o.waking || start
	o.mu.Unlock()
	if isFull {
		o.warn(context.Background(), "can't send at once what waits", errChanged)
	}
	if start {
		go o.wakeChanged()
	}
}

// maxChanged is how many clients can have changed that weren't woken yet.
const maxChanged = 10_000

var errChanged = errors.New("outbox: too many clients have changed at a time")

// wakeChanged wakes clients that have changed until there are none.
func (o *Outbox) wakeChanged() {
	for {
		o.mu.Lock()
		clients := slices.Collect(maps.Keys(o.changed))
		clear(o.changed)
		o.waking = len(clients) > 0
		o.mu.Unlock()
		if len(clients) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		for _, client := range clients {
			o.warn(context.Background(), "can't send at once what waits", o.Wake(ctx, client))
		}
		cancel()
	}
}

// Wake is [Outbox.Changed] for those who want to wait, and to know the error.
func (o *Outbox) Wake(ctx context.Context, client string) error {
	if err := o.queue.wake(ctx, client); err != nil {
		return fmt.Errorf("outbox: wake: %w", err)
	}
	o.mu.Lock()
	p := o.process
	o.mu.Unlock()
	if p == nil {
		return nil
	}
	p.mu.Lock()
	d := p.lines[client]
	p.mu.Unlock()
	if d != nil {
		d.wake()
	} else {
		p.hint([]string{client})
	}
	return nil
}

// wake reacts to a webhook that was set, or to anything else that may have changed where
// notifications go. If the line has to rest, it does the remainder afterwards.
func (l *line) wake(now time.Time, staleness time.Duration) {
	l.ahead = now.Add(staleness)
	l.resume = time.Time{}
	l.event()
	if l.woken = now.Before(l.rested); l.woken {
		for entity, to := range l.routes {
			to.at, to.until = time.Time{}, time.Time{}
			l.routes[entity] = to
		}
	} else {
		clear(l.routes)
		l.readAll()
	}
	for _, r := range l.receivers {
		r.blocked = time.Time{} // the next attempt asks the sender, who knows about the pause
		if l.woken {
			l.takeTurn(r)
		} else {
			l.release(r)
		}
		l.settle(r, now)
	}
}

// After it has read what waits, past the first page, a line rests ten times as long, or a minute.
// Until then, a wake only lets the receivers go on with what is known to wait for them.
const (
	wakeShare = 10
	maxRest   = time.Minute
)

// rest makes the line rest after a read that took a time.
func (l *line) rest(now time.Time, took time.Duration) {
	if l.rested.Before(now) {
		l.rested = now
	}
	l.rested = l.rested.Add(wakeShare * took)
	if most := now.Add(maxRest); l.rested.After(most) {
		l.rested = most
	}
}

// readAll makes the line read everything that waits, from the start.
func (l *line) readAll() {
	for _, r := range l.receivers {
		r.skipped = [2]*position{}
	}
	l.again = [2]*position{{}, {due: retriesStart.due}}
	l.earlier = nil
	l.event()
}

// release forgets the queued messages of a receiver. They stay in the tables.
func (l *line) release(r *receiver) {
	for _, m := range slices.Clone(r.queue) {
		if l.order == AnyOrder {
			l.drop(m)
			continue
		}
		for _, m := range slices.Backward(slices.Clone(l.entities[m.entity].messages)) {
			l.drop(m)
		}
	}
}

// wake says that a webhook was set.
func (d *drain) wake() {
	d.mu.Lock()
	d.wakeAt(time.Now())
	d.awake = true
	d.mu.Unlock()
	signal(d.kick)
}

// wakeAt wakes the line, and looks up the webhooks again for as long as the sender's view of them
// may lag behind what was set.
func (d *drain) wakeAt(now time.Time) {
	d.process.wakes.Add(1)
	d.line.wake(now, staleness)
	d.woken, d.recheck = now, now.Add(staleness/16)
}

// recheckWebhooks repeats a wake when it's time to look up the webhooks again.
func (d *drain) recheckWebhooks(now time.Time) {
	if d.recheck.IsZero() || now.Before(d.recheck) {
		return
	}
	end := d.woken.Add(staleness)
	d.line.wake(now, max(end.Sub(now), staleness/16)) // the last one needs time to read, too
	d.recheck = time.Time{}
	if now.Before(end) {
		d.recheck = earliest(end, now.Add(now.Sub(d.woken)))
	}
}

// wake makes the line of a client due, whoever has it.
func (t *tables) wake(ctx context.Context, client string) error {
	_, err := exec(ctx, t.db, t.queries.wake, values{"client": []byte(client)})
	return err
}
