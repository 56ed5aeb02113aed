package deliver

import (
	"context"
	"slices"
	"time"
)

// This many attempts can wait for each slot of a receiver and of a client. A queue that wakes
// due messages every 200 milliseconds keeps all slots busy if that many can wait as end in
// that time: 20 a slot, for attempts that take 10 milliseconds.
const (
	waitingPerReceiverSlot = 16
	waitingPerClientSlot   = 6
)

// client is a gauge with a client's limits, and the line of attempts that wait for a slot.
type client struct {
	gauge
	limit       int
	perReceiver int
	line        []*waiter // for each receiver, first come, first served
}

// waiter is an attempt that waits for a slot. It gets one grant, unless it leaves first.
type waiter struct {
	limiter  *limiter
	key      receiverKey
	client   *client
	receiver *receiver
	granted  chan grant // buffered
}

// hasSlot reports whether a slot is free for the client and a receiver of it.
func (c *client) hasSlot(r *receiver) bool {
	limit, _ := r.limit(c.perReceiver)
	return c.underway < c.limit && r.underway < limit
}

// hasRoom reports whether another attempt may wait for a receiver.
func (c *client) hasRoom(r *receiver) bool {
	return r.waiting < waitingPerReceiverSlot*c.perReceiver && len(c.line) < waitingPerClientSlot*c.limit
}

// expect returns how long an attempt at a busy receiver would wait for its slot.
func (c *client) expect(r *receiver, now time.Time) (wait time.Duration) {
	if limit, _ := r.limit(c.perReceiver); r.underway >= limit {
		wait = time.Duration(r.waiting+1) * r.interval(now, limit)
	}
	if c.underway >= c.limit {
		wait = max(wait, time.Duration(len(c.line)+1)*c.interval(now, c.limit))
	}
	return wait
}

// advance gives free slots to waiting attempts, until none of them can have one.
func (l *limiter) advance(c *client, now time.Time) {
	c.line = slices.DeleteFunc(c.line, func(w *waiter) bool {
		if !c.hasSlot(w.receiver) {
			return false
		}
		w.receiver.waiting--
		w.granted <- grant{slot: l.start(w.key, c, w.receiver, now)}
		return true
	})
}

// dismiss defers all attempts that wait for a receiver.
func (l *limiter) dismiss(c *client, r *receiver, now time.Time) {
	c.line = slices.DeleteFunc(c.line, func(w *waiter) bool {
		if w.receiver != r {
			return false
		}
		r.waiting--
		w.granted <- l.deferral(c, r, now)
		return true
	})
}

// await returns the grant. It waits until the patience is over or ctx ends.
func (w *waiter) await(ctx context.Context) grant {
	timer := time.NewTimer(w.limiter.patience)
	defer timer.Stop()
	select {
	case g := <-w.granted:
		return g
	case <-timer.C:
	case <-ctx.Done():
	}
	return w.leave(time.Now())
}

// leave gives up, unless the grant has just arrived.
func (w *waiter) leave(now time.Time) grant {
	l, c := w.limiter, w.client
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(c.line, w)
	if i < 0 {
		return <-w.granted
	}
	c.line = slices.Delete(c.line, i, i+1)
	w.receiver.waiting--
	defer l.settle(w.key, c, w.receiver, now)
	return l.deferral(c, w.receiver, now)
}
