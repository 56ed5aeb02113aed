package oplog

import (
	"context"

	"example.com/go-webhookcfg/webhookcfg"
)

// Append makes c durable and returns; the state has c after the next Barrier. If ctx
// ends first, its error is returned at once: c is then applied wholly or not at all.
func (l *Log) Append(ctx context.Context, c webhookcfg.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var space [256]byte // for most bodies
	c, body, err := encode(space[:0], c)
	if err != nil {
		return err
	}
	g, i, err := l.join(ctx, c, body)
	if err != nil {
		return err
	}
	select {
	case <-g.done:
		return g.err
	case <-ctx.Done():
		l.withdraw(g, i)
		return ctx.Err()
	}
}

// join puts a change into the pending group, as its entry i, once there is room in it.
func (l *Log) join(ctx context.Context, c webhookcfg.Change, body []byte) (g *group, i int, err error) {
	for {
		l.mu.Lock()
		g := l.pending
		switch {
		case l.closed:
			l.mu.Unlock()
			return nil, 0, ErrClosed
		case l.failed != nil:
			l.mu.Unlock()
			return nil, 0, l.failed
		case g.fits(body):
			i := g.add(c, body)
			l.mu.Unlock()
			if i == 0 {
				l.nudge()
			}
			return g, i, nil
		}
		l.mu.Unlock()
		select {
		case <-g.done:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// withdraw takes an entry out of its group, unless it is being written already.
// Its place in the group stays taken, so that the group stays bounded also while a
// sync hangs and callers come and go.
func (l *Log) withdraw(g *group, i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if g == l.pending {
		g.entries[i].isWithdrawn = true
	}
}

// nudge tells run that there is something to do.
func (l *Log) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Barrier returns when the state has all changes that were answered before. Who
// reads the state calls it first.
func (l *Log) Barrier() {
	if !l.backlog.isEmpty() {
		l.backlog.apply()
	}
}

// BarrierFor is a Barrier for who reads what one entity has.
func (l *Log) BarrierFor(client, entity string) {
	if l.backlog.tally.reaches(client, entity) {
		l.backlog.apply()
	}
}
