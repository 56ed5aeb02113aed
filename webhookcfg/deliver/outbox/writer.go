package outbox

import (
	"context"
	"errors"
	"slices"
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

// unwritten returns how many outcomes and how many seen notifications wait to be written. If
// it's more than a batch, lines that are behind read no more, and with two batches of outcomes
// they send no more.
func (p *process) unwritten() (outcomes, seen int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.outcomes), len(p.seen)
}

// mark hands over notifications to be written as seen, which is less urgent than outcomes.
func (p *process) mark(seen []pending) {
	p.mu.Lock()
	p.seen = append(p.seen, seen...)
	p.mu.Unlock()
	signal(p.written)
}

// add hands over an outcome to be written.
func (p *process) add(o pending) {
	p.mu.Lock()
	p.outcomes = append(p.outcomes, o)
	p.mu.Unlock()
	signal(p.written)
}

// update hands over a change of a line to be written.
func (p *process) update(u lineUpdate) {
	p.mu.Lock()
	p.updates = append(p.updates, u)
	p.mu.Unlock()
	signal(p.written)
}

// writeAll writes outcomes, those of all lines together, until ctx ends.
func (p *process) writeAll(ctx context.Context) {
	for {
		select {
		case <-p.written:
		case <-ctx.Done():
			return
		}
		if !wait(ctx, flushWait) {
			return
		}
		for delay := flushWait; ; delay = min(max(2*delay, flushWait), time.Second) {
			start := time.Now()
			more, err := p.flush(ctx)
			if errors.Is(err, errLost) {
				p.lose()
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
			p.warn(ctx, "can't write what was delivered", err)
			if !wait(ctx, jitter(delay)) {
				return
			}
		}
	}
}

// flushAll writes everything there is to write.
func (p *process) flushAll(ctx context.Context) error {
	for {
		if more, err := p.flush(ctx); err != nil || !more {
			return err
		}
	}
}

// flush writes a batch, and reports whether there's more to write. After an error, it stays to
// be written.
func (p *process) flush(ctx context.Context) (more bool, err error) {
	select {
	case p.flushing <- struct{}{}:
		defer func() { <-p.flushing }()
	case <-ctx.Done():
		return true, ctx.Err()
	}
	p.mu.Lock()
	seen := p.seen[:min(len(p.seen), p.seenLimit)]
	outcomes := p.outcomes[:min(len(p.outcomes), maxBatch)]
	updates := p.updates[:min(len(p.updates), maxBatch)]
	p.mu.Unlock()
	all := slices.Concat(seen, outcomes)
	if len(all)+len(updates) == 0 {
		return false, nil
	}
	start := time.Now()
	call, cancel := context.WithTimeout(ctx, callTimeout)
	err = p.queue.write(call, &p.identity, lease, batch{latest(all), updates})
	cancel()
	if err != nil {
		return true, err
	}
	p.extended(start)
	p.mu.Lock()
	p.seen = p.seen[len(seen):]
	p.outcomes = p.outcomes[len(outcomes):]
	p.updates = p.updates[len(updates):]
	p.seenLimit = min(2*p.seenLimit, maxBatch)
	if time.Since(start) > longWrite {
		p.seenLimit = minSeen
	}
	if len(p.seen) > 0 {
		signal(p.written) // the next time
	}
	more = len(p.outcomes)+len(p.updates) > 0
	p.mu.Unlock()
	p.settle(all, updates)
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
func (p *process) settle(outcomes []pending, updates []lineUpdate) {
	byDrain := make(map[*drain][]outcome)
	for _, o := range outcomes {
		byDrain[o.drain] = append(byDrain[o.drain], o.outcome)
		if o.end != nil && p.options.OnEnd != nil {
			contain(p.Outbox, func() any { p.options.OnEnd(*o.end); return nil }, nil)
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
		if u.giveBack {
			p.remove(u.drain)
		}
	}
}

// remove forgets a line that was given back.
func (p *process) remove(d *drain) {
	d.mu.Lock()
	isQuiet := !d.quiet.IsZero()
	d.mu.Unlock()
	p.mu.Lock()
	delete(p.lines, d.line.client)
	if !isQuiet {
		p.active--
	}
	p.mu.Unlock()
}
