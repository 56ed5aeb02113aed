package queue

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
)

const (
	// hold is how long a process keeps a line without work. The next notification then needs no claim.
	hold = 5 * time.Second
	// slice is how long a line may be drained while others wait.
	slice = 5 * time.Second
	// When a line belongs to another process, it starts nothing for handOver, and is given back if
	// nothing is under way by then. Otherwise it tries again after handOverAgain.
	handOver      = time.Second
	handOverAgain = 30 * time.Second
	// longestAway is when a line is due at the latest for which something waits.
	longestAway = 15 * time.Minute
	// saveEvery is how often the pauses of a line are written, and gatherEvery how often its marks are
	// removed that are done with.
	saveEvery   = time.Second
	gatherEvery = time.Second
	// trust is how long the webhook of an entity is taken from memory to sort what waits. It's looked up
	// again for each attempt.
	trust = 5 * time.Second
	// maxTrusted is how many of them a line remembers.
	maxTrusted = 4096
	// lookUpTimeout is for the lookup of one webhook, and findTimeout for those of all that was read, until
	// they're sorted.
	lookUpTimeout = 5 * time.Second
	findTimeout   = 2 * time.Second
)

// drain is a line that a process has. One goroutine looks up, reads and starts, and the attempts have
// goroutines of their own.
type drain struct {
	process *process
	client  string
	kick    chan struct{} // has an element after an event

	mu       sync.Mutex
	line     *line.Line
	kind     int              // of its turn
	marks    map[string]int64 // by entity
	hadMany  bool             // there are more marks
	gatherAt time.Time        // when to see which ones are done with
	hooks    map[string]trusted
	unsaved  map[string]line.Pause
	saveAt   time.Time // no pauses are written before
	underWay int

	claimed  time.Time
	quiet    time.Time // since when there's nothing to do; zero if there is
	asks     bool      // the tables or the sender are being asked
	isFirst  bool      // nothing was read yet
	stopped  bool      // starts nothing
	yields   bool      // stopped, since others have its turn
	moves    time.Time // since when it starts nothing, since the line belongs to another process
	moveNext time.Time
	returned bool // given back, or about to be
	newsToo  bool // there's news since it was returned
}

// trusted is a webhook that was looked up.
type trusted struct {
	hook line.Hook
	at   time.Time
}

func newDrain(p *process, client string, kind int) *drain {
	now := time.Now()
	return &drain{
		process: p, client: client, kind: kind, kick: make(chan struct{}, 1), line: line.New(p.sender.Limits(client), rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64()))),
		marks: make(map[string]int64), hooks: make(map[string]trusted), unsaved: make(map[string]line.Pause),
		claimed: now, moveNext: now.Add(slice), isFirst: true,
	}
}

// hasNews says that notifications were enqueued. It reports whether the line had nothing to do.
func (d *drain) hasNews() bool {
	d.mu.Lock()
	wasQuiet := !d.quiet.IsZero()
	d.newsToo = d.newsToo || d.returned
	d.line.News()
	d.mu.Unlock()
	signal(d.kick)
	return wasQuiet
}

// surveyed says that notifications wait of which the line knows nothing, perhaps.
func (d *drain) surveyed() {
	d.mu.Lock()
	d.newsToo = d.newsToo || d.returned
	d.line.News()
	d.line.Resent()
	d.mu.Unlock()
	signal(d.kick)
}

// woken says that notifications were sent again, perhaps, and takes in those of some marks that are the
// client's.
func (d *drain) woken(marks []mark) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer signal(d.kick)
	d.newsToo = d.newsToo || d.returned
	d.line.Resent()
	for _, m := range marks {
		if n, ok := d.marks[m.entity]; m.client != d.client || ok && n == m.n {
			continue
		}
		d.marks[m.entity] = m.n
		d.hadMany = d.hadMany || len(d.marks) >= maxMarks
		clear(d.hooks)
		d.line.Changed(m.entity, time.Now())
	}
}

// forget drops what the line has in memory, since its client is being erased. Attempts under way
// complete.
func (d *drain) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.returned {
		d.returned, d.stopped = true, true
		d.process.writer.giveBack(d, giveBack{client: d.client, isGone: true})
		signal(d.kick)
	}
}

// run drains the line until it's given back or the process ends.
func (d *drain) run(ctx context.Context) {
	for {
		d.lookUp(ctx)
		d.startAll(ctx)
		d.read(ctx)
		d.startAll(ctx)
		at, isDone := d.rest()
		if isDone {
			return
		}
		timer := time.NewTimer(d.pause(at))
		select {
		case <-d.kick:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// pause returns how long to wait until a time. Without a valid lease, what's due stays so.
func (d *drain) pause(at time.Time) time.Duration {
	least := time.Millisecond
	if !d.process.mayStart() {
		least = maxPoll
	}
	return max(time.Until(at), least)
}

// lookUp looks up the webhooks that have changed.
func (d *drain) lookUp(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stopped {
		return
	}
	for _, entity := range d.line.Looks(time.Now()) {
		d.mu.Unlock()
		h, isAlone, err := d.webhook(ctx, entity)
		d.mu.Lock()
		clear(d.hooks) // which may be older
		switch now := time.Now(); {
		case errors.Is(err, errors.ErrUnsupported): // the base is found with what waits for it
		case err != nil:
			d.line.LookFailed(entity, now)
		case entity == "":
			d.line.SetAlone(isAlone)
			d.line.Looked("", h, now)
		default:
			d.line.Looked(entity, h, now)
		}
	}
	d.gathered()
}

// gathered removes the marks of entities for which nothing is left to do.
func (d *drain) gathered() {
	now := time.Now()
	if len(d.marks) == 0 || now.Before(d.gatherAt) {
		return
	}
	d.gatherAt = now.Add(gatherEvery)
	left := d.line.Ungathered()
	for entity, n := range d.marks {
		if !left[entity] {
			d.process.writer.unmark(mark{d.client, entity, n})
			delete(d.marks, entity)
		}
	}
	if len(d.marks) == 0 && d.hadMany {
		d.hadMany = false
		d.process.hintMark(d.client)
	}
}

// webhook looks up a webhook, or the base if the entity is "".
func (d *drain) webhook(ctx context.Context, entity string) (h line.Hook, isAlone bool, err error) {
	call, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	if entity == "" {
		return d.process.sender.Base(call, d.client)
	}
	h, err = d.process.sender.Webhook(call, d.client, entity)
	return h, false, err
}

// read reads what the line asks for.
func (d *drain) read(ctx context.Context) {
	p := d.process
	d.mu.Lock()
	if d.stopped || !p.mayStart() {
		d.mu.Unlock()
		return
	}
	q := d.line.Ask(time.Now())
	isBehind := d.line.IsBehind() || d.isFirst && d.kind == turnDue
	d.asks = q != nil
	d.mu.Unlock()
	if q == nil {
		return
	}
	a, err := d.ask(ctx, q, isBehind)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asks = false
	if err != nil {
		p.options.Warn(ctx, "can't read what waits", err)
		d.line.Failed(q, time.Now())
		return
	}
	d.isFirst = d.isFirst && q.IsListing
	p.writer.move(d, d.line.Answer(q, a, time.Now()))
	signal(d.kick) // there may be something else to ask
}

// ask asks the tables, and the sender for the webhooks of what they have.
func (d *drain) ask(ctx context.Context, q *line.Question, isBehind bool) (line.Answer, error) {
	p := d.process
	lane := p.reading
	if isBehind {
		lane = p.catchingUp
	}
	select {
	case lane <- struct{}{}:
	case <-ctx.Done():
		return line.Answer{}, ctx.Err()
	}
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	a, err := p.tables.Answer(call, d.client, q)
	<-lane
	if err != nil {
		return a, err
	}
	now := time.Now()
	var entities []string
	for _, g := range a.Groups {
		entities = append(entities, g.Entity)
	}
	for i := range a.Parts {
		for j := range a.Parts[i].Rows {
			r := &a.Parts[i].Rows[j]
			r.Taken = now
			entities = append(entities, r.Entity)
		}
	}
	a.Hooks = make(map[string]line.Hook)
	seen := make(map[string]bool)
	// If the lookups hang, those that are left count as failed.
	hurry, stop := context.WithTimeout(ctx, findTimeout)
	defer stop()
	for _, entity := range entities {
		if !seen[entity] {
			seen[entity] = true
			d.find(hurry, entity, a.Hooks)
		}
	}
	return a, nil
}

// find looks up the webhook of an entity, unless that was done a moment ago.
func (d *drain) find(ctx context.Context, entity string, hooks map[string]line.Hook) {
	name := entity
	d.mu.Lock()
	if d.line.IsAlone() {
		name = ""
	}
	t, ok := d.hooks[name]
	d.mu.Unlock()
	if !ok || time.Since(t.at) > trust {
		if ctx.Err() != nil {
			return
		}
		h, _, err := d.webhook(ctx, name)
		if err != nil {
			return
		}
		t = trusted{h, time.Now()}
		d.mu.Lock()
		if len(d.hooks) > maxTrusted {
			clear(d.hooks)
		}
		d.hooks[name] = t
		d.mu.Unlock()
	}
	hooks[entity] = t.hook
}

// try is an attempt that may start.
type try struct {
	row    *line.Row
	counts bool // for the load
}

// startAll starts as many attempts as the limits allow.
func (d *drain) startAll(ctx context.Context) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for t := d.next(); t.row != nil; t = d.next() {
		d.process.attempts.Go(func() { d.attempts(ctx, t) })
	}
}

// next returns the attempt that may start now, with the line locked.
func (d *drain) next() (t try) {
	p := d.process
	if d.stopped || !p.mayStart() {
		return t
	}
	isBehind := d.line.IsBehind()
	if isBehind && !p.load.admits(d, d.underWay == 0) {
		return t
	}
	if t.row = d.line.Start(time.Now()); t.row == nil {
		return t
	}
	d.underWay++
	if t.counts = isBehind && t.row.IsProven(); t.counts {
		p.load.start()
	}
	return t
}

// attempts makes an attempt, and then others as long as the limits allow.
func (d *drain) attempts(ctx context.Context, t try) {
	for t.row != nil {
		d.process.underWay.Add(1)
		o := d.send(ctx, t.row)
		d.process.underWay.Add(-1)
		t = d.finish(t, o)
	}
}

// send makes an attempt. It returns nil if the lease or a limit forbids it.
func (d *drain) send(ctx context.Context, r *line.Row) *Outcome {
	p := d.process
	if r.Body == nil {
		call, cancel := context.WithTimeout(ctx, callTimeout)
		body, err := p.tables.body(call, r.Seq, r.Enqueued)
		cancel()
		switch {
		case err != nil:
			p.options.Warn(ctx, "can't read a body", err)
			return &Outcome{Result: line.Result{IsOurs: true}, Attempts: r.Attempts}
		case body == nil: // it was erased
			return &Outcome{Result: line.Result{HasEnded: true}, State: Dropped, Attempts: r.Attempts}
		}
		r.Body = body
	}
	call, cancel := context.WithTimeout(ctx, lookUpTimeout)
	defer cancel()
	a, err := p.sender.Begin(call, d.client, r)
	if err != nil {
		return &Outcome{Result: line.Result{IsOurs: true}, Attempts: r.Attempts}
	}
	d.mu.Lock()
	isAllowed, writes := true, []line.Write(nil)
	if h, isKnown := a.Webhook(); isKnown {
		isAllowed, writes = d.line.Confirm(r, h, time.Now())
	}
	if isAllowed && !p.mayStart() {
		isAllowed = false
		writes = d.line.Cancel(r, time.Now())
	}
	p.writer.move(d, writes)
	d.mu.Unlock()
	if !isAllowed {
		return nil
	}
	o := a.Send(ctx)
	return &o
}

// finish decides what becomes of a notification after an attempt. It returns the next one.
func (d *drain) finish(t try, o *Outcome) try {
	p := d.process
	d.mu.Lock()
	defer d.mu.Unlock()
	defer signal(d.kick)
	d.underWay--
	if t.counts {
		p.load.end()
	}
	if o != nil {
		writes := d.line.End(t.row, o.Result, time.Now())
		p.writer.add(d, *o, writes[0])
		p.writer.move(d, writes[1:])
	}
	return d.next()
}

// rest decides what to do while nothing can be started or read. It returns when to go on, or that the
// line is no longer this drain's.
func (d *drain) rest() (at time.Time, isDone bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	l, p := d.line, d.process
	if p.isLost() || d.returned || d.stopped && p.isStopping() {
		return at, true
	}
	d.save(now)
	if isBusy := !d.stopped && d.quiet.IsZero(); isBusy {
		isOver := now.Sub(d.claimed) > slice && p.isScarce()
		if isOver || d.kind == turnDue && p.takeYield() {
			d.stopped, d.yields = true, true
		}
	}
	d.handOver(now)
	isIdle := d.underWay == 0 && !d.asks
	isQuiet := isIdle && l.IsIdle(now)
	d.setQuiet(isQuiet || d.yields, now)
	at = l.Next()
	if len(d.unsaved) > 0 {
		at = earliest(at, d.saveAt)
	}
	if len(d.marks) > 0 {
		at = earliest(at, d.gatherAt)
	}
	switch {
	case d.stopped:
		switch {
		case isIdle && l.IsWritten():
			d.giveBack(0)
		case d.yields && p.hasTurn(d.kind):
			d.stopped, d.yields = false, false
			d.setQuiet(false, now)
			return now, false
		}
		return now.Add(maxPoll), false
	case !isQuiet:
		return earliest(at, now.Add(hold)), false
	case now.Sub(d.quiet) >= hold && len(d.marks) == 0 && (at.IsZero() || at.Sub(now) > hold):
		due := time.Duration(never / 2000 * time.Microsecond)
		if !at.IsZero() {
			due = min(at.Sub(now), longestAway)
		}
		d.giveBack(due)
		return now.Add(time.Second), false
	default:
		return earliest(at, now.Add(hold)), false
	}
}

// handOver stops a line that belongs to another process, so that it can be given back, unless
// something stays under way.
func (d *drain) handOver(now time.Time) {
	switch {
	case d.moves.IsZero() && !d.stopped && now.After(d.moveNext) && !d.process.owns(d.client):
		d.stopped, d.moves = true, now
	case !d.moves.IsZero() && now.Sub(d.moves) >= handOver:
		d.stopped, d.moves, d.moveNext = d.yields, time.Time{}, now.Add(handOverAgain)
	}
}

// setQuiet records whether the line has work, with the line locked. Only those that have some count as
// active. One that has some again has something new.
func (d *drain) setQuiet(isQuiet bool, now time.Time) {
	if isQuiet == !d.quiet.IsZero() {
		return
	}
	n := -1
	if d.quiet = now; !isQuiet {
		d.quiet, d.claimed, d.kind, n = time.Time{}, now, turnNews, 1
	}
	d.process.mu.Lock()
	d.process.active[d.kind] += n
	d.process.mu.Unlock()
}

// hasTurn reports whether a line that has no turn may have one, since nobody else wants it.
func (p *process) hasTurn(kind int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.stopping && p.scarce == [2]bool{} && p.free(kind, false) > 0
}

// save writes the pauses that have changed, for people and for the next process.
func (d *drain) save(now time.Time) {
	for _, s := range d.line.Unsaved() {
		d.unsaved[s.Entity] = s
	}
	if len(d.unsaved) > 0 && !now.Before(d.saveAt) {
		d.process.writer.pauses(d, maps.Values(d.unsaved))
		clear(d.unsaved)
		d.saveAt = now.Add(saveEvery)
	}
}

// giveBack returns the line to the table, due after a time. Nothing is under way.
func (d *drain) giveBack(due time.Duration) {
	d.returned, d.stopped = true, true
	d.saveAt = time.Time{}
	d.save(time.Now())
	d.process.writer.giveBack(d, giveBack{client: d.client, due: due, isShut: due > 0 && d.line.IsShut(time.Now())})
}

// earliest returns the earlier of two times, of which zero is never.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
