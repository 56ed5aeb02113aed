package oplog

import (
	"context"
	"runtime"
	"slices"

	"example.com/go-webhookcfg/webhookcfg"
)

// Append makes c durable, applies it to the state and returns. If ctx ends first, its
// error is returned at once: c is then applied later or not at all.
func (l *Log) Append(ctx context.Context, c webhookcfg.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var space [256]byte // enough for most bodies
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

// join adds a change to the pending batch, as its entry i, once it fits.
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

// withdraw removes an entry from its batch, unless the batch is being written already.
// The entry still counts, so that the batch stays bounded while a sync hangs and callers
// come and go.
func (l *Log) withdraw(b *batch, i int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if b == l.pending {
		b.entries[i].isWithdrawn = true
	}
}

// signal wakes the commit loop.
func (l *Log) signal() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// maxBatch bounds the bytes of a batch; later callers wait for the next one.
const maxBatch = 1 << 20

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// batch is a group of changes that are written and synced together.
type batch struct {
	entries []batchEntry  // in the order of the file
	bodies  []byte        // of all entries, concatenated
	done    chan struct{} // closed once the batch is applied, or err is set
	err     error
}

// batchEntry is a change of a batch.
type batchEntry struct {
	change webhookcfg.Change
	// end is the offset of the end of the entry's body in the bodies of the batch.
	end         int
	isWithdrawn bool
}

// fits reports whether the line of one more change fits. The first one always does.
func (b *batch) fits(body []byte) bool {
	return len(b.entries) == 0 || len(b.bodies)+len(body)+(len(b.entries)+1)*maxLineTail <= maxBatch
}

// add adds a change as the entry i.
func (b *batch) add(c webhookcfg.Change, body []byte) (i int) {
	b.bodies = append(b.bodies, body...)
	b.entries = append(b.entries, batchEntry{change: c, end: len(b.bodies)})
	return len(b.entries) - 1
}

// encode appends the lines of the entries that were not withdrawn, to be written at the
// offset synced, and their changes.
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

// successor returns an empty batch that reuses the space of b.
func (b *batch) successor() *batch {
	clear(b.entries)
	return &batch{entries: b.entries[:0], bodies: b.bodies[:0], done: make(chan struct{})}
}

// maxYields bounds the yields without a new caller before a batch is cut.
const maxYields = 64

// applyStep is how many changes of a batch are applied at a time. Readers of the state
// need not wait for the whole batch.
const applyStep = 16

// commitLoop writes one batch after the other until Close. No other goroutine changes
// the file, so that a caller whose ctx ends need not wait for the disk.
func (l *Log) commitLoop() {
	defer close(l.stopped)
	for {
		select {
		case task := <-l.tasks:
			task()
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

// waitForBatch yields to callers as long as they keep joining the pending batch, and a
// little longer while there are fewer than expected: most callers that just returned
// come back with their next change. A lone caller does not wait.
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

// joined returns the number of entries of the pending batch.
func (l *Log) joined() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending.entries)
}

// cut ends the pending batch and starts the next one. Last reports that the log is
// closed, so that no other batch follows.
func (l *Log) cut() (b *batch, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, l.pending = l.pending, l.spare
	return b, l.closed
}

// commit makes a batch durable, applies it and lets its callers return, in this order:
// no reader sees a change that a crash may still undo, and a caller that returned finds
// its change applied.
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

// write makes a batch durable and returns its changes.
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

// expect sets the number of callers that are worth waiting for: those that are about to
// return, and those that joined meanwhile.
func (l *Log) expect(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = len(b.entries) + len(l.pending.entries)
}
