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
	b, i, err := l.join(ctx, c, body)
	if err != nil {
		return err
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		l.withdraw(b, i)
		return ctx.Err()
	}
}

// join puts a change into the pending group, as its entry i, once there is room in it.
func (l *Log) join(ctx context.Context, c webhookcfg.Change, body []byte) (b *batch, i int, err error) {
	for {
		l.mu.Lock()
		b := l.pending
		switch {
		case l.closed:
			l.mu.Unlock()
			return nil, 0, ErrClosed
		case l.failed != nil:
			l.mu.Unlock()
			return nil, 0, l.failed
		case b.fits(body):
			i := b.add(c, body)
			l.mu.Unlock()
			if i == 0 {
				l.signal()
			}
			return b, i, nil
		}
		l.mu.Unlock()
		select {
		case <-b.done:
		case <-ctx.Done():
			return nil, 0, ctx.Err()
		}
	}
}

// withdraw takes an entry out of its group, unless it is being written already.
// Its place in the group stays taken, so that the group stays bounded also while a
// sync hangs and callers come and go.
func (l *Log) withdraw(b *batch, i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b == l.pending {
		b.entries[i].isWithdrawn = true
	}
}

// nudge tells run that there is something to do.
func (l *Log) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// maxBatch bounds the bytes of a group; who comes later waits for the next.
const maxBatch = 1 << 20

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// group is what is written and synced together.
type batch struct {
	entries []batchEntry  // in the order of the file
	bodies  []byte        // one behind the other
	done    chan struct{} // closed once the group is durable, or err is set
	err     error
}

// entry is a change on its way into the file.
type batchEntry struct {
	change webhookcfg.Change
	// end is where the entry's body ends in the bodies of its group.
	end         int
	isWithdrawn bool
}

// fits reports whether there is room for the line of a change.
func (b *batch) fits(body []byte) bool {
	return len(b.entries) == 0 || len(b.bodies)+len(body)+(len(b.entries)+1)*maxLineTail <= maxBatch
}

// add adds a change, as the entry i.
func (b *batch) add(c webhookcfg.Change, body []byte) (i int) {
	b.bodies = append(b.bodies, body...)
	b.entries = append(b.entries, batchEntry{change: c, end: len(b.bodies)})
	return len(b.entries) - 1
}

// encode appends the lines of what was not withdrawn, to be written at the offset
// synced, and the changes they are of.
func (b *batch) encode(synced int64, lines []byte, changes []webhookcfg.Change) ([]byte, []webhookcfg.Change) {
	start := 0
	for i := range b.entries {
		e := &b.entries[i]
		if !e.isWithdrawn {
			lines = appendLine(lines, b.bodies[start:e.end], synced)
			changes = append(changes, e.change)
		}
		start = e.end
	}
	return lines, changes
}

// successor returns a group that makes use of the space of b, which is done with.
func (b *batch) successor() *batch {
	clear(b.entries)
	return &batch{entries: b.entries[:0], bodies: b.bodies[:0], done: make(chan struct{})}
}

// maxYields is how often others are let run, without anybody joining, until a group is
// taken without callers who are expected.
const maxYields = 64

// applyStep is how many changes are applied without others reading in between.
const applyStep = 16

// run writes one group after the other until Close. It is the one goroutine that
// changes the file, so that a caller whose ctx ends need not wait for the disk.
func (l *Log) commitLoop() {
	defer close(l.stopped)
	for {
		select {
		case action := <-l.tasks:
			action()
			continue
		case <-l.wake:
		}
		l.waitForBatch()
		b, last := l.cut()
		l.commit(b)
		if last {
			return
		}
	}
}

// gather lets callers run as long as they keep joining the pending group, and a
// little longer if fewer came than last time: those who were just answered mostly
// come back with their next change. A lone caller is not kept waiting.
func (l *Log) waitForBatch() {
	for seen, yields := 0, 0; ; yields++ {
		runtime.Gosched()
		n := l.joined()
		switch {
		case n > seen:
			seen, yields = n, 0
		case n >= l.expected, yields >= maxYields:
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
func (l *Log) cut() (b *batch, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, l.pending = l.pending, l.spare
	return b, l.closed
}

// commit makes a group durable, applies it and answers its callers, in this order:
// nobody can see a change that a crash may still undo, and who was answered sees it.
func (l *Log) commit(b *batch) {
	changes, err := l.write(b)
	for part := range slices.Chunk(changes, applyStep) {
		l.state.ApplyAll(part)
	}
	clear(changes)
	b.err = err
	l.expect(b)
	close(b.done)
	l.spare = b.successor()
	if err == nil {
		l.durable.Store(l.file.end)
		l.compactIfDue()
	}
}

// write makes a group durable and returns its changes.
func (l *Log) write(b *batch) ([]webhookcfg.Change, error) {
	if err := l.failure(); err != nil {
		return nil, err
	}
	l.lines, l.changes = b.encode(l.file.end, l.lines[:0], l.changes[:0])
	if len(l.changes) == 0 {
		return nil, nil
	}
	if err := l.file.append(l.lines, len(l.changes)); err != nil {
		return nil, l.fail(err)
	}
	return l.changes, nil
}

// expect counts the callers whose next changes are worth waiting for: those who are
// about to be answered, and those who joined meanwhile.
func (l *Log) expect(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = len(b.entries) + len(l.pending.entries)
}
