package oplog

import (
	"context"
	"runtime"
	"slices"

	"example.com/go-webhookcfg/webhookcfg"
)

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

// maxGroup bounds the bytes of a group; who comes later waits for the next.
const maxGroup = 1 << 20

func newGroup() *group { return &group{done: make(chan struct{})} }

// group is what is written and synced together.
type group struct {
	entries []entry       // in the order of the file
	bodies  []byte        // one behind the other
	done    chan struct{} // closed once the group is durable, or err is set
	err     error
}

// entry is a change on its way into the file.
type entry struct {
	change webhookcfg.Change
	// end is where the entry's body ends in the bodies of its group.
	end         int
	isWithdrawn bool
}

// fits reports whether there is room for the line of a change.
func (g *group) fits(body []byte) bool {
	return len(g.entries) == 0 || len(g.bodies)+len(body)+(len(g.entries)+1)*maxTail <= maxGroup
}

// add adds a change, as the entry i.
func (g *group) add(c webhookcfg.Change, body []byte) (i int) {
	g.bodies = append(g.bodies, body...)
	g.entries = append(g.entries, entry{change: c, end: len(g.bodies)})
	return len(g.entries) - 1
}

// encode appends the lines of what was not withdrawn, to be written at the offset
// synced, and the changes they are of.
func (g *group) encode(synced int64, lines []byte, changes []webhookcfg.Change) ([]byte, []webhookcfg.Change) {
	start := 0
	for i := range g.entries {
		e := &g.entries[i]
		if !e.isWithdrawn {
			lines = appendLine(lines, g.bodies[start:e.end], synced)
			changes = append(changes, e.change)
		}
		start = e.end
	}
	return lines, changes
}

// successor returns a group that makes use of the space of g, which is done with.
func (g *group) successor() *group {
	clear(g.entries)
	return &group{entries: g.entries[:0], bodies: g.bodies[:0], done: make(chan struct{})}
}

// patience is how often others are let run, without anybody joining, until a group is
// taken without callers who are expected.
const patience = 64

// applyStep is how many changes are applied without others reading in between.
const applyStep = 16

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
		n := l.joined()
		switch {
		case n > seen:
			seen, yields = n, 0
		case n >= l.expected, yields >= patience:
			return
		}
	}
}

// joined returns how many callers are in the pending group.
func (l *Log) joined() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending.entries)
}

// take ends the pending group and begins the next; last says that none will follow.
func (l *Log) take() (g *group, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g, l.pending = l.pending, l.spare
	return g, l.closed
}

// commit makes a group durable, applies it and answers its callers, in this order:
// nobody can see a change that a crash may still undo, and who was answered sees it.
func (l *Log) commit(g *group) {
	changes, err := l.write(g)
	for part := range slices.Chunk(changes, applyStep) {
		l.state.Apply(part)
	}
	clear(changes)
	g.err = err
	l.expect(g)
	close(g.done)
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
