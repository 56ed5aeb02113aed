package outbox

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// staleness is how long the sender's view of the webhooks may lag after a wake.
const staleness = 15 * time.Second

// Wake sends what waits for a client at once, wherever its webhook now leads: call it when the
// client has set or unset a webhook, and when you know that a receiver works again. It's one
// small write, whatever waits, and reaches the process that has the client within a fraction
// of a second. Pauses end if the webhook was set since, and retries are then due, too.
//
// Call it from the handler's OnEvent, in a goroutine of your own:
//
//	OnEvent: func(ctx context.Context, e webhookcfg.Event) {
//		if (e.Operation == "set" || e.Operation == "unset") && e.Status == http.StatusOK {
//			go box.Wake(context.WithoutCancel(ctx), e.Client)
//		}
//	},
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
// notifications go. It costs the same whatever waits.
func (l *line) wake(now time.Time, staleness time.Duration) {
	clear(l.routes)
	l.ahead = now.Add(staleness)
	for _, r := range l.receivers {
		r.blocked = time.Time{} // the next attempt asks the sender, who knows about the pause
		l.release(r)
		r.skipped = [2]*position{}
		l.settle(r, now)
	}
	l.again = [2]*position{{}, {due: 1}}
	l.resume, l.lookAt = time.Time{}, time.Time{}
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
	d.process.wakes.Add(1)
	d.mu.Lock()
	now := time.Now()
	d.line.wake(now, staleness)
	d.awake = true
	d.recheck = now.Add(staleness / 16)
	d.mu.Unlock()
	signal(d.kick)
}

// recheckWebhooks repeats a wake, since the sender's view of the webhooks may lag behind what
// was set.
func (d *drain) recheckWebhooks(now time.Time) {
	if d.recheck.IsZero() || now.Before(d.recheck) {
		return
	}
	ahead := d.line.ahead
	if left := ahead.Sub(now); left > 0 {
		d.line.wake(now, left)
		d.recheck = now.Add(max(staleness-left, staleness/16))
	} else {
		d.recheck = time.Time{}
	}
}

// wake makes the line of a client due, whoever has it.
func (t *tables) wake(ctx context.Context, client string) error {
	_, err := exec(ctx, t.db, t.queries.wake, values{"client": []byte(client)})
	return err
}
