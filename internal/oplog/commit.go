package oplog

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// Append makes c durable, applies it to the state and returns. If ctx ends first, Append
// returns its error at once, and c may or may not be applied later.
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

// join adds a change to the pending batch once it fits, and returns its index there.
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

// withdraw removes an entry from its batch, unless the batch is already being written. The
// entry still counts towards the size of the batch. Otherwise callers that come and go while
// a sync hangs could let the batch grow without a bound.
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

// maxBatch is how many bytes a batch can have. Callers that don't fit wait for the next
// batch.
const maxBatch = 1 << 20

func newBatch() *batch { return &batch{done: make(chan struct{})} }

// batch is a group of changes that share a write and a sync.
type batch struct {
	entries []batchEntry  // in the order of the file
	bodies  []byte        // of all entries, concatenated
	done    chan struct{} // closed once the fields below are set
	// made is how many entries, counted from the first, are durable and applied, or were
	// withdrawn. The others get err.
	made int
	err  error
	// compaction was running when the batch was cut. A later one can't write anything before
	// the batch is done.
	compaction *compaction
}

// outcome returns the error of entry i, once the batch is done.
func (b *batch) outcome(i int) error {
	if i < b.made {
		return nil
	}
	return b.err
}

// batchEntry is a change of a batch.
type batchEntry struct {
	change webhookcfg.Change
	// end is where the entry's body ends in the bodies of the batch.
	end         int
	isWithdrawn bool
}

// fits reports whether one more change fits. An empty batch takes any change.
func (b *batch) fits(body []byte) bool {
	return len(b.entries) == 0 || len(b.bodies)+len(body)+(len(b.entries)+1)*maxLineTail <= maxBatch
}

// add adds a change as the entry i.
func (b *batch) add(c webhookcfg.Change, body []byte) (i int) {
	b.bodies = append(b.bodies, body...)
	b.entries = append(b.entries, batchEntry{change: c, end: len(b.bodies)})
	return len(b.entries) - 1
}

// encode appends the lines of the entries that are neither made nor withdrawn, and the
// changes in them. The lines must be written at the offset synced.
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
	// The loop cuts a batch after maxYields yields without a new caller, or once its yields
	// have taken 1/waitPart of the time of the last write.
	maxYields = 64
	waitPart  = 4
)

// applyStep is how many changes of a batch are applied at a time, so that readers of the
// state needn't wait for the whole batch.
const applyStep = 16

// checkInterval is how often batches check the file and its name before they're acknowledged.
// Checking with every batch would be slow: on ext4 of Linux 6.18, if you ask for a file's
// attributes between two syncs, the second one takes a third longer, and if you read the
// file, a tenth longer.
const checkInterval = 10 * time.Millisecond

// commitLoop writes one batch after the other until Close. Only its goroutine changes the
// file, so a caller whose ctx ends doesn't have to wait for the disk.
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

// waitForBatch yields to callers as long as they keep joining the pending batch. It yields a
// little longer if there are fewer than expected, because most callers that just returned
// come back with their next change. It stops after a part of the time that the last write
// took: on a busy machine, a single yield can take longer than the wait is worth.
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

// cut ends the pending batch and starts the next one. If the log has been blocked since
// callers joined the batch, the batch fails. If the log is closed, this batch is the last
// one.
func (l *Log) cut() (b *batch, last bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, l.pending, l.writing = l.pending, l.spare, true
	b.compaction = l.compaction
	if l.blocked {
		b.err = l.failed
	}
	return b, l.closed
}

// commit makes the changes of a batch durable, applies them and lets their callers return.
// The order matters: readers must not see a change that a crash can still undo, and a caller
// that returned must find its change applied.
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

// write makes the changes of a batch durable and applies them. If the disk is full, it makes
// those that fit.
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

// append writes lines after the last record of the file, and returns how many are durable.
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
		if err := l.checkFile(); err != nil {
			return 0, err
		}
	}
	made = bytes.Count(lines[:written], []byte{'\n'})
	l.file.end += int64(written)
	l.file.records += made
	if err == nil && l.backoff > 0 {
		l.recovered()
	}
	return made, err
}

// checkFile checks that the file has what was written, and that the name leads to it. If not,
// the file is suspect.
func (l *Log) checkFile() error {
	if err := errors.Join(l.file.readBack(), l.checkName()); err != nil {
		l.file.isSuspect = true
		return err
	}
	l.checkedAt = time.Now()
	return nil
}

var errRenamed = errors.New("the file or its directory was removed, renamed, replaced or hidden by a mount while it was open: move it back, or save the changes with File.Backup, close the store, put the copy in its place and open it again")

// checkName returns an error if the name of the log doesn't lead to its file any more.
func (l *Log) checkName() error {
	isNamed, err := l.fs.SameFile(l.name, l.file.file)
	if err == nil && !isNamed {
		err = errRenamed
	}
	return err
}

// hasCallers reports whether changes are being written or wait for it.
func (l *Log) hasCallers() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writing || len(l.pending.entries) > 0
}

// expect sets how many callers the next batch should wait for: those of b, which are about
// to return, and those that have already joined it.
func (l *Log) expect(b *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expected = len(b.entries) + len(l.pending.entries)
	l.writing = false
}
