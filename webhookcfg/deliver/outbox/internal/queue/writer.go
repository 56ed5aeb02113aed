package queue

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"sync"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
)

const (
	// flushWait is how long what's written waits for others, so that all is written together, unless
	// maxUnwritten outcomes wait.
	flushWait = 50 * time.Millisecond
	// maxBatch is how many of each kind are written at once. It's more than maxUnwritten.
	maxBatch = 256
)

// outcome is one that is to be written.
type outcome struct {
	Outcome
	write line.Write
	drain *drain
}

// moved is a notification that moves to another group.
type moved struct {
	write line.Write
	drain *drain
}

// returned is a line that's given back.
type returned struct {
	giveBack
	drain *drain
}

// batch is what a process writes at once.
type batch struct {
	outcomes []outcome
	moves    []moved
	pauses   []clientPause
	marks    []mark
	lines    []returned
}

func (b *batch) isEmpty() bool {
	return len(b.outcomes)+len(b.moves)+len(b.pauses)+len(b.marks)+len(b.lines) == 0
}

// writer writes what a process's lines hand over, those of all lines together. It has one batch under
// way at a time.
type writer struct {
	process *process

	mu     sync.Mutex
	next   batch
	news   chan struct{} // has an element if there's something to write
	isFull chan struct{} // has an element if maxUnwritten outcomes wait

	flushing chan struct{} // has an element while somebody writes
}

func newWriter(p *process) *writer {
	return &writer{process: p, news: make(chan struct{}, 1), isFull: make(chan struct{}, 1), flushing: make(chan struct{}, 1)}
}

// change changes the next batch.
func (w *writer) change(add func(*batch)) {
	w.mu.Lock()
	add(&w.next)
	isFull := len(w.next.outcomes) >= maxUnwritten
	w.mu.Unlock()
	signal(w.news)
	if isFull {
		signal(w.isFull)
	}
}

// add hands over an outcome.
func (w *writer) add(d *drain, o Outcome, write line.Write) {
	w.process.load.add(1)
	w.change(func(b *batch) { b.outcomes = append(b.outcomes, outcome{o, write, d}) })
}

// move hands over notifications that move.
func (w *writer) move(d *drain, writes []line.Write) {
	if len(writes) == 0 {
		return
	}
	w.change(func(b *batch) {
		for _, write := range writes {
			b.moves = append(b.moves, moved{write, d})
		}
	})
}

// pauses hands over pauses.
func (w *writer) pauses(d *drain, all iter.Seq[line.Pause]) {
	w.change(func(b *batch) {
		for p := range all {
			b.pauses = append(b.pauses, clientPause{d.client, p})
		}
	})
}

// unmark hands over a mark to be removed.
func (w *writer) unmark(m mark) { w.change(func(b *batch) { b.marks = append(b.marks, m) }) }

// giveBack hands over a line to be given back.
func (w *writer) giveBack(d *drain, g giveBack) {
	w.change(func(b *batch) { b.lines = append(b.lines, returned{g, d}) })
}

// run writes until ctx ends.
func (w *writer) run(ctx context.Context) {
	for {
		select {
		case <-w.news:
		case <-ctx.Done():
			return
		}
		w.gather(ctx)
		for delay := flushWait; ; delay = min(2*delay, time.Second) {
			isMore, err := w.flush(ctx)
			if errors.Is(err, errLost) {
				w.process.lose()
				return
			}
			if err == nil {
				if isMore {
					delay = flushWait
					continue
				}
				break
			}
			w.process.options.Warn(ctx, "can't write what was delivered", err)
			if !Wait(ctx, Jitter(delay)) {
				return
			}
		}
	}
}

// gather waits for others to write.
func (w *writer) gather(ctx context.Context) {
	timer := time.NewTimer(flushWait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.isFull:
	case <-ctx.Done():
	}
}

// flushAll writes everything there is to write.
func (w *writer) flushAll(ctx context.Context) error {
	for {
		if isMore, err := w.flush(ctx); err != nil || !isMore {
			return err
		}
	}
}

// take returns the first part of the next batch. It stays there until drop.
func (w *writer) take() batch {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.next
	b.outcomes, b.moves = b.outcomes[:min(len(b.outcomes), maxBatch)], b.moves[:min(len(b.moves), maxBatch)]
	b.pauses, b.marks = b.pauses[:min(len(b.pauses), maxBatch)], b.marks[:min(len(b.marks), maxBatch)]
	if len(b.outcomes) < len(w.next.outcomes) || len(b.moves) < len(w.next.moves) || len(b.pauses) < len(w.next.pauses) || len(b.marks) < len(w.next.marks) {
		b.lines = nil // what they were about comes first
	}
	return b
}

// drop removes what was written, and reports whether there's more.
func (w *writer) drop(b batch) (isMore bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := &w.next
	n.outcomes, n.moves = n.outcomes[len(b.outcomes):], n.moves[len(b.moves):]
	n.pauses, n.marks, n.lines = n.pauses[len(b.pauses):], n.marks[len(b.marks):], n.lines[len(b.lines):]
	select {
	case <-w.isFull:
	default:
	}
	return len(n.outcomes) >= maxUnwritten || len(n.moves) >= maxBatch || len(n.lines) > 0 && b.lines == nil
}

// flush writes a batch, and reports whether there's enough for another one. After an error, it stays
// to be written.
func (w *writer) flush(ctx context.Context) (isMore bool, err error) {
	select {
	case w.flushing <- struct{}{}:
		defer func() { <-w.flushing }()
	case <-ctx.Done():
		return true, ctx.Err()
	}
	b := w.take()
	if b.isEmpty() {
		return false, nil
	}
	start := time.Now()
	call, cancel := context.WithTimeout(ctx, callTimeout)
	again, err := w.process.tables.write(call, &w.process.identity, b)
	cancel()
	if err != nil {
		return true, err
	}
	w.process.extended(start)
	isMore = w.drop(b)
	w.settle(b, again)
	return isMore, nil
}

// settle tells lines and the host what was written. The host doesn't hear of those that were sent again.
func (w *writer) settle(b batch, again map[int64]bool) {
	written := make(map[*drain][]line.Write)
	for _, o := range b.outcomes {
		written[o.drain] = append(written[o.drain], o.write)
		if o.OnWritten != nil && !again[o.write.Row.Seq] {
			o.OnWritten()
		}
	}
	for _, m := range b.moves {
		written[m.drain] = append(written[m.drain], m.write)
	}
	now := time.Now()
	for d, all := range written {
		d.mu.Lock()
		d.line.Written(all, now)
		d.mu.Unlock()
		signal(d.kick)
	}
	w.process.load.add(-len(b.outcomes))
	w.process.load.wake()
	for _, r := range b.lines {
		w.process.remove(r.drain)
	}
}

// remove forgets a line that was given back.
func (p *process) remove(d *drain) {
	d.mu.Lock()
	isQuiet, isFresh := !d.quiet.IsZero(), d.newsToo && !d.yields
	d.mu.Unlock()
	p.mu.Lock()
	delete(p.lines, d.client)
	if !isQuiet {
		p.active[d.kind]--
	}
	p.mu.Unlock()
	if isFresh { // and nobody else waits for a turn
		p.hint([]string{d.client})
	}
}

// write writes a batch. It returns the numbers of outcomes whose notifications were sent again meanwhile.
func (t *Tables) write(ctx context.Context, me *identity, b batch) (again map[int64]bool, err error) {
	err = t.fenced(ctx, me, func(tx *sql.Tx) error {
		var moves []line.Write
		for _, m := range b.moves {
			moves = append(moves, m.write)
		}
		var ends []End
		for _, o := range b.outcomes {
			state := o.State
			if !o.HasEnded {
				state = Waiting
			}
			ends = append(ends, End{Write: o.write, State: state, Attempts: o.Attempts, Status: o.Status, Reason: o.Reason, History: o.History})
		}
		var err error
		if again, err = t.Write(ctx, tx, moves, ends); err != nil {
			return err
		}
		if err := t.savePauses(ctx, tx, latest(b.pauses), time.Now()); err != nil {
			return err
		}
		for _, m := range b.marks {
			if err := t.unmark(ctx, tx, m); err != nil {
				return err
			}
		}
		for _, r := range b.lines {
			if err := t.giveBack(ctx, tx, me.id, r.giveBack); err != nil {
				return err
			}
		}
		return nil
	})
	return again, err
}

// latest returns the last pause of each webhook.
func latest(all []clientPause) (last []clientPause) {
	index := make(map[change]int)
	for _, p := range all {
		of := change{p.client, p.Entity}
		if i, ok := index[of]; ok {
			last[i] = p
			continue
		}
		index[of] = len(last)
		last = append(last, p)
	}
	return last
}
