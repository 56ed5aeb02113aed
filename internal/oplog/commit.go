package oplog

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

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
		return b.outcome(i)
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
		case l.blocked:
			err := l.failed
			l.mu.Unlock()
			return nil, 0, err
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
	done    chan struct{} // closed once the fields below are set
	// made is the number of entries, from the first one, that are durable and applied, or
	// were withdrawn; err is for the others.
	made int
	err  error
	// compaction is the one that ran when the batch was cut. A later one writes nothing
	// before the batch is done.
	compaction *compaction
}

// outcome returns the error of the entry i of a batch that is done.
func (b *batch) outcome(i int) error {
	if i < b.made {
		return nil
	}
	return b.err
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

// encode appends the lines of the entries that are neither made nor withdrawn, to be
// written at the offset synced, and their changes.
func (b *batch) encode(synced int64, lines []byte, changes []webhookcfg.Change) ([]byte, []webhookcfg.Change) {
	for i := b.made; i < len(b.entries); i++ {
		if e := &b.entries[i]; !e.isWithdrawn {
			lines = appendLine(lines, b.body(i), synced)
			changes = append(changes, e.change)
		}
	}
	return lines, changes
}

func (b *batch) body(i int) []byte {
	if i == 0 {
		return b.bodies[:b.entries[0].end]
	}
	return b.bodies[b.entries[i-1].end:b.entries[i].end]
}

// advance counts the next n changes as made.
func (b *batch) advance(n int) {
	for ; b.made < len(b.entries); b.made++ {
		if b.entries[b.made].isWithdrawn {
			continue
		}
		if n == 0 {
			return
		}
		n--
	}
}

// successor returns an empty batch that reuses the space of b.
func (b *batch) successor() *batch {
	clear(b.entries)
	return &batch{entries: b.entries[:0], bodies: b.bodies[:0], done: make(chan struct{})}
}

const (
	// maxYields bounds the yields without a new caller before a batch is cut, and waitPart
	// the time of all of them, as a part of the time that the last write took.
	maxYields = 64
	waitPart  = 4
)

// applyStep is how many changes of a batch are applied at a time. Readers of the state
// need not wait for the whole batch.
const applyStep = 16

// checkInterval is the time after which a batch checks the file and its name again, before
// it is acknowledged. It does not do so every time: on ext4 of Linux 6.18, asking for the
// attributes of a file between two syncs makes the second one a third slower, and reading it
// a tenth.
const checkInterval = 10 * time.Millisecond

// commitLoop writes one batch after the other until Close. No other goroutine changes
// the file, so that a caller whose ctx ends need not wait for the disk.
func (l *Log) commitLoop() {
	defer close(l.stopped)
	for {
		select {
		case task := <-l.tasks:
			task()
			continue
		case <-l.retryDue:
			l.retry()
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
// come back with their next change. It ends after a part of the time that the last write
// took: on a busy machine, one yield can take longer than the wait is worth.
func (l *Log) waitForBatch() {
	started := time.Now()
	for seen, yields := 0, 0; ; yields++ {
		n := l.joined()
		if n > seen {
			seen, yields = n, 0
		} else if n >= l.expected || yields >= maxYields {
			return
		}
		if time.Since(started) >= l.lastWrite/waitPart {
			return
		}
		l.options.yield()
	}
}

// joined returns the number of entries of the pending batch.
func (l *Log) joined() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending.entries)
}

// cut ends the pending batch and starts the next one. A batch that was joined before the
// log was blocked fails. Last reports that the log is closed, so that no other batch
// follows.
func (l *Log) cut() (b *batch, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, l.pending = l.pending, l.spare
	b.compaction = l.compaction
	if l.blocked {
		b.err = l.failed
	}
	return b, l.closed
}

// commit makes the changes of a batch durable, applies them and lets their callers
// return, in this order: no reader sees a change that a crash may still undo, and a
// caller that returned finds its change applied.
func (l *Log) commit(b *batch) {
	if b.err == nil {
		l.write(b)
	}
	l.expect(b)
	close(b.done)
	l.spare = b.successor()
	if b.err == nil {
		l.compactIfDue()
	}
}

// write makes the changes of a batch durable and applies them. If the disk is full, those
// that fit are made.
func (l *Log) write(b *batch) {
	for b.made < len(b.entries) {
		l.lines, l.changes = b.encode(l.file.end, l.lines[:0], l.changes[:0])
		made, err := l.append(l.lines)
		b.advance(made)
		for part := range slices.Chunk(l.changes[:made], applyStep) {
			l.state.ApplyAll(part)
		}
		clear(l.changes)
		l.durable.Store(l.file.end)
		if made > 0 {
			l.measure(func(s *Stats) {
				s.Changes += uint64(made)
				s.LastBatch, s.LastWrite = made, l.lastWrite
			})
		}
		if err != nil && b.made < len(b.entries) && (l.isBlocked() || !l.makeRoom(b)) {
			b.err = l.fail(err)
			return
		}
	}
}

// append makes lines the next records of the file, and returns how many are durable.
func (l *Log) append(lines []byte) (made int, err error) {
	if len(lines) == 0 {
		return 0, nil
	}
	started := time.Now()
	written, err := l.file.append(lines)
	l.lastWrite = time.Since(started)
	if written == 0 {
		return 0, err
	}
	if time.Since(l.checkedAt) >= checkInterval {
		if err := errors.Join(l.file.readBack(), l.checkName()); err != nil {
			l.file.isSuspect = true
			return 0, err
		}
		l.checkedAt = time.Now()
	}
	made = bytes.Count(lines[:written], []byte{'\n'})
	l.file.end += int64(written)
	l.file.records += made
	if err == nil && l.backoff > 0 {
		l.recovered()
	}
	return made, err
}

var errRenamed = errors.New("the file or its directory was removed, renamed, replaced or hidden by a mount while it was open: move it back, or save the changes with File.Backup")

// checkName returns an error if the name of the log does not lead to its file any more.
func (l *Log) checkName() error {
	isNamed, err := l.fs.SameFile(l.name, l.file.file)
	if err == nil && !isNamed {
		err = errRenamed
	}
	return err
}

// expect sets the number of callers that are worth waiting for: those that are about to
// return, and those that joined meanwhile.
func (l *Log) expect(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = len(b.entries) + len(l.pending.entries)
}
