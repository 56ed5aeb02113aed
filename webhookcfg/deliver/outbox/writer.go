package outbox

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	// flushWait is how long outcomes wait for others, so that all are written together.
	flushWait = 50 * time.Millisecond
	maxBatch  = 256 // outcomes
	// Seen notifications fill up batches, fewer if that takes long, since SQLite's other writers
	// and readers wait meanwhile.
	minSeen   = 32
	longWrite = 10 * time.Millisecond
)

// batch is what a process writes at once.
type batch struct {
	outcomes []outcome
	lines    []lineUpdate
}

// lineUpdate is what a process writes about a line that it has.
type lineUpdate struct {
	client   string
	forget   bool // the client is being erased
	giveBack bool
	awake    bool          // it was woken, and knows
	due      time.Duration // from now, if it's given back
	pauses   []pause
	drain    *drain
}

// pending is an outcome to be written.
type pending struct {
	outcome
	drain *drain
	end   *End
}

// writer writes what a process's lines hand over, those of all lines together.
type writer struct {
	process *process

	mu        sync.Mutex
	outcomes  []pending
	seen      []pending // to be written as seen, as many at a time as seenLimit
	seenLimit int
	updates   []lineUpdate
	news      chan struct{} // has an element if there's something to write

	flushing chan struct{} // has an element while somebody writes
}

func newWriter(p *process) *writer {
	return &writer{process: p, seenLimit: minSeen, news: make(chan struct{}, 1), flushing: make(chan struct{}, 1)}
}

// unwritten returns how many outcomes and how many seen notifications wait to be written. If
// it's more than a batch, lines that are behind read no more, and with two batches of outcomes
// they send no more.
func (w *writer) unwritten() (outcomes, seen int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.outcomes), len(w.seen)
}

// mark hands over notifications to be written as seen, which is less urgent than outcomes.
func (w *writer) mark(seen []pending) {
	w.mu.Lock()
	w.seen = append(w.seen, seen...)
	w.mu.Unlock()
	signal(w.news)
}

// add hands over an outcome to be written.
func (w *writer) add(o pending) {
	w.mu.Lock()
	w.outcomes = append(w.outcomes, o)
	w.mu.Unlock()
	signal(w.news)
}

// update hands over a change of a line to be written.
func (w *writer) update(u lineUpdate) {
	w.mu.Lock()
	w.updates = append(w.updates, u)
	w.mu.Unlock()
	signal(w.news)
}

// run writes until ctx ends.
func (w *writer) run(ctx context.Context) {
	for {
		select {
		case <-w.news:
		case <-ctx.Done():
			return
		}
		if !wait(ctx, flushWait) {
			return
		}
		for delay := flushWait; ; delay = min(max(2*delay, flushWait), time.Second) {
			start := time.Now()
			more, err := w.flush(ctx)
			if errors.Is(err, errLost) {
				w.process.lose()
				return
			}
			if err == nil && !more {
				break
			}
			if err == nil {
				delay = 0
				wait(ctx, time.Since(start)) // the others' turn
				continue
			}
			w.process.warn(ctx, "can't write what was delivered", err)
			if !wait(ctx, jitter(delay)) {
				return
			}
		}
	}
}

// flushAll writes everything there is to write.
func (w *writer) flushAll(ctx context.Context) error {
	for {
		if more, err := w.flush(ctx); err != nil || !more {
			return err
		}
	}
}

// flush writes a batch, and reports whether there's more to write. After an error, it stays to
// be written.
func (w *writer) flush(ctx context.Context) (more bool, err error) {
	select {
	case w.flushing <- struct{}{}:
		defer func() { <-w.flushing }()
	case <-ctx.Done():
		return true, ctx.Err()
	}
	w.mu.Lock()
	seen := w.seen[:min(len(w.seen), w.seenLimit)]
	outcomes := w.outcomes[:min(len(w.outcomes), maxBatch)]
	updates := w.updates[:min(len(w.updates), maxBatch)]
	w.mu.Unlock()
	all := slices.Concat(seen, outcomes)
	if len(all)+len(updates) == 0 {
		return false, nil
	}
	start := time.Now()
	call, cancel := context.WithTimeout(ctx, callTimeout)
	err = w.process.queue.write(call, &w.process.identity, lease, batch{latest(all), updates})
	cancel()
	if err != nil {
		return true, err
	}
	w.process.extended(start)
	w.mu.Lock()
	w.seen = w.seen[len(seen):]
	w.outcomes = w.outcomes[len(outcomes):]
	w.updates = w.updates[len(updates):]
	w.seenLimit = min(2*w.seenLimit, maxBatch)
	if time.Since(start) > longWrite {
		w.seenLimit = minSeen
	}
	if len(w.seen) > 0 {
		signal(w.news) // the next time
	}
	more = len(w.outcomes)+len(w.updates) > 0
	w.mu.Unlock()
	w.settle(all, updates)
	return more, nil
}

// latest returns the last outcome of each notification. One may have been seen and delivered
// since the last batch, and a statement must not update it twice.
func latest(all []pending) (outcomes []outcome) {
	index := make(map[int64]int, len(all))
	for _, o := range all {
		if i, ok := index[o.Seq]; ok {
			outcomes[i] = o.outcome
			continue
		}
		index[o.Seq] = len(outcomes)
		outcomes = append(outcomes, o.outcome)
	}
	return outcomes
}

// settle tells lines and the host what was written.
func (w *writer) settle(outcomes []pending, updates []lineUpdate) {
	byDrain := make(map[*drain][]outcome)
	for _, o := range outcomes {
		byDrain[o.drain] = append(byDrain[o.drain], o.outcome)
		if o.end != nil && w.process.options.OnEnd != nil {
			contain(w.process.Outbox, func() any { w.process.options.OnEnd(*o.end); return nil }, nil)
		}
	}
	now := time.Now()
	for d, all := range byDrain {
		d.mu.Lock()
		d.line.written(all, now)
		d.mu.Unlock()
		signal(d.kick)
	}
	for _, u := range updates {
		if u.giveBack || u.forget {
			w.process.remove(u.drain)
		}
	}
}

// remove forgets a line that was given back or removed.
func (p *process) remove(d *drain) {
	d.mu.Lock()
	isQuiet, isFresh := !d.quiet.IsZero(), d.line.fresh && !d.yields
	d.mu.Unlock()
	p.mu.Lock()
	delete(p.lines, d.line.client)
	if !isQuiet {
		p.active--
	}
	p.mu.Unlock()
	if isQuiet && isFresh { // it was enqueued since, and nobody else waits for a turn
		p.hint([]string{d.line.client})
	}
}
