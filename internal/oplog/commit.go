package oplog

import (
	"context"
	"runtime"

	"example.com/go-webhookcfg/webhookcfg"
)

// patience is how often others are let run, without anybody joining, until a group is
// taken without callers who are expected.
const patience = 64

// Append makes c durable, applies it to the state and returns. If ctx ends first,
// its error is returned at once: c is then applied wholly or not at all.
func (l *Log) Append(ctx context.Context, c webhookcfg.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var space [256]byte // for most bodies
	c, body, err := encode(space[:0], c)
	if err != nil {
		return err
	}
	g, i, done, err := l.join(ctx, c, body)
	if err != nil {
		return err
	}
	select {
	case <-done:
		return g.err
	case <-ctx.Done():
		l.withdraw(g, i)
		return ctx.Err()
	}
}

// join puts a change into the pending group, as its entry i, once there is room in it.
func (l *Log) join(ctx context.Context, c webhookcfg.Change, body []byte) (g *group, i int, done <-chan struct{}, err error) {
	for {
		l.mu.Lock()
		g := l.pending
		switch {
		case l.closed:
			l.mu.Unlock()
			return nil, 0, nil, ErrClosed
		case l.failed != nil:
			l.mu.Unlock()
			return nil, 0, nil, l.failed
		case g.fits(body):
			i, done := g.add(c, body)
			l.mu.Unlock()
			if i == 0 {
				l.nudge()
			}
			return g, i, done, nil
		}
		full := g.parts[0]
		l.mu.Unlock()
		select {
		case <-full:
		case <-ctx.Done():
			return nil, 0, nil, ctx.Err()
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

// run writes one group after the other until Close. It is the one goroutine that
// changes the file, so that a caller whose ctx ends need not wait for the disk.
func (l *Log) run() {
	defer close(l.stopped)
	for {
		select {
		case action := <-l.between:
			action()
			continue
		case <-l.wake:
		}
		l.gather()
		g, last := l.take()
		l.commit(g)
		if last {
			return
		}
	}
}

// gather lets callers run as long as they keep joining the pending group, and a
// little longer if fewer came than last time: those who were just answered mostly
// come back with their next change. A lone caller is not kept waiting.
func (l *Log) gather() {
	for seen, yields := 0, 0; ; yields++ {
		runtime.Gosched()
		l.mu.Lock()
		n := len(l.pending.entries)
		l.mu.Unlock()
		switch {
		case n > seen:
			seen, yields = n, 0
		case n >= l.expected, yields >= patience:
			return
		}
	}
}

// take ends the pending group and begins the next; last says that none will follow.
func (l *Log) take() (g *group, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, l.pending = l.pending, l.spare
	return g, l.closed
}

// commit makes a group durable and then applies it, in this order: nobody can see
// a change that a crash may still undo. As those that were withdrawn leave no gap,
// a change may be applied with an earlier part than the one its caller waits for.
func (l *Log) commit(g *group) {
	changes, err := l.write(g)
	g.err = err
	l.expect(g)
	for _, done := range g.parts {
		n := min(len(changes), partSize)
		l.state.Apply(changes[:n])
		changes = changes[n:]
		close(done)
	}
	l.spare = g.successor()
	if err == nil {
		l.durable.Store(l.segment.end)
		l.compactIfDue()
	}
}

// write makes a group durable and returns its changes.
func (l *Log) write(g *group) ([]webhookcfg.Change, error) {
	if err := l.failure(); err != nil {
		return nil, err
	}
	l.lines, l.batch = g.encode(l.segment.end, l.lines[:0], l.batch[:0])
	if len(l.batch) == 0 {
		return nil, nil
	}
	if err := l.segment.append(l.lines, len(l.batch)); err != nil {
		return nil, l.fail(err)
	}
	return l.batch, nil
}

// expect counts the callers whose next changes are worth waiting for: those who are
// about to be answered, and those who joined meanwhile.
func (l *Log) expect(g *group) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = len(g.entries) + len(l.pending.entries)
}
