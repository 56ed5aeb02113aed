package oplog

import (
	"context"
	"runtime"

	"example.com/go-webhookcfg/webhookcfg"
)

// maxGroup bounds the bytes of a group; who comes later waits for the next.
const maxGroup = 1 << 20

// group is what is written and synced together.
type group struct {
	// entries are in the order of the file. One without a body was withdrawn.
	entries []entry
	size    int
	// done is closed once the group is durable and applied, or err is set.
	done chan struct{}
	err  error
}

func newGroup(likely int) *group {
	return &group{entries: make([]entry, 0, likely), done: make(chan struct{})}
}

// Append makes c durable, applies it to the state and returns. If ctx ends first,
// its error is returned at once: c is then applied wholly or not at all.
func (l *Log) Append(ctx context.Context, c webhookcfg.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e, err := newEntry(c)
	if err != nil {
		return err
	}
	g, i, err := l.join(ctx, e)
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

// join puts e into the pending group, as soon as there is room in it.
func (l *Log) join(ctx context.Context, e entry) (g *group, i int, err error) {
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
		case g.size == 0 || g.size+e.size() <= maxGroup:
			i := len(g.entries)
			g.entries = append(g.entries, e)
			g.size += e.size()
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
		g.entries[i] = entry{}
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
		g.err = l.commit(g)
		close(g.done)
		if last {
			return
		}
	}
}

// gather lets callers run as long as they keep joining the pending group: those
// whom the last group just answered come back with their next change.
// A lone caller is not kept waiting.
func (l *Log) gather() {
	for seen := 0; ; {
		runtime.Gosched()
		l.mu.Lock()
		n := len(l.pending.entries)
		l.mu.Unlock()
		if n == seen {
			return
		}
		seen = n
	}
}

// take ends the pending group and begins the next; last says that none will follow.
func (l *Log) take() (g *group, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, l.pending = l.pending, newGroup(len(l.pending.entries))
	return g, l.closed
}

// commit makes a group durable and then applies it, in this order: nobody can see
// a change that a crash may still undo.
func (l *Log) commit(g *group) error {
	if err := l.failure(); err != nil {
		return err
	}
	l.encode(g)
	if len(l.batch) == 0 {
		return nil
	}
	if err := l.segment.append(l.lines, len(l.batch)); err != nil {
		return l.fail(err)
	}
	l.state.Apply(l.batch)
	l.durable.Store(l.segment.end)
	l.compactIfDue()
	return nil
}

// encode fills lines and batch with what is left of the group.
func (l *Log) encode(g *group) {
	l.lines, l.batch = l.lines[:0], l.batch[:0]
	for i := range g.entries {
		if e := &g.entries[i]; e.body != nil {
			l.lines = e.appendLine(l.lines, l.segment.end)
			l.batch = append(l.batch, e.change)
		}
	}
}
