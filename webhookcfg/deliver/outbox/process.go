package outbox

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

const (
	// callTimeout is for a call of the database. Locks in the database, and not the time,
	// keep it from being too late.
	callTimeout = 15 * time.Second
	maxReads    = 4 // at a time

	// lease is how long a process has its lines after its last sign of life. It renews the
	// lease four times as often, and starts nothing in its last quarter.
	lease = 3500 * time.Millisecond
	// flushWait is how long outcomes wait for others, so that all are written together.
	flushWait = 50 * time.Millisecond
	maxBatch  = 1000 // outcomes

	// A process looks for work often if it has just found some, and less and less otherwise.
	minPoll = 2 * time.Millisecond
	maxPoll = 150 * time.Millisecond
	// expectFor is how long a process looks often after an Enqueue.
	expectFor = 100 * time.Millisecond
	pollLimit = 200

	// hold is how long a process keeps a line without work. The next notification then needs
	// no claim.
	hold = 5 * time.Second
	// slice is how long a line may be drained while others wait.
	slice = 5 * time.Second
	// staleness is how long the sender's view of the webhooks may lag after a wake.
	staleness = 15 * time.Second
)

// process is one identity of Run. It ends when its lease is lost.
type process struct {
	*Outbox
	id      int64
	expired chan struct{} // closed when the lease is lost

	mu       sync.Mutex
	lines    map[string]*drain
	active   int       // lines with work
	valid    time.Time // no attempt starts after
	lost     bool
	hinted   map[string]bool
	scarce   bool // others wait for a turn
	outcomes []pending
	updates  []lineUpdate
	stopping bool
	hints    chan struct{} // has an element after a hint
	written  chan struct{} // has an element if there's something to write

	flushing chan struct{} // has an element while somebody writes
	reading  chan struct{} // has an element for each read

	underWay atomic.Int64
	attempts sync.WaitGroup
	drains   sync.WaitGroup
}

// pending is an outcome to be written.
type pending struct {
	outcome
	drain *drain
	end   *End
}

func newProcess(o *Outbox) *process {
	return &process{
		Outbox: o, id: rand.Int64N(1<<62) + 1, expired: make(chan struct{}), lines: make(map[string]*drain),
		hinted: make(map[string]bool), reading: make(chan struct{}, maxReads), flushing: make(chan struct{}, 1),
		hints: make(chan struct{}, 1), written: make(chan struct{}, 1),
	}
}

// Run sends notifications until ctx ends. Then it starts no more attempts, waits for those
// under way for at most [Options.Grace], writes down what became of them, and gives its
// clients back, so that other processes go on at once. It then returns nil.
//
// Run it once per process, in any number of processes. While the database is down, Run waits.
// What a killed process was doing, others do again within five seconds.
//
// Run returns an error at once if it can't work: without a sender, if the tables are missing
// or of a later version, or if another process has another Schedule or Order.
func (o *Outbox) Run(ctx context.Context) error {
	if o.sender == nil {
		return errors.New("outbox: Run without a sender: pass one to New")
	}
	o.mu.Lock()
	isRunning := o.running
	o.running = true
	o.mu.Unlock()
	if isRunning {
		return errors.New("outbox: Run is running already")
	}
	defer func() {
		o.mu.Lock()
		o.running = false
		o.mu.Unlock()
	}()
	for {
		p := newProcess(o)
		start := time.Now()
		switch err := o.queue.join(ctx, p.id, lease, o.options.settings()); {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errSettings):
			return err
		case err != nil:
			if final := o.queue.check(ctx); isFinal(final) {
				return final
			}
			o.warn(ctx, "can't start", err)
			wait(ctx, jitter(time.Second))
			continue
		}
		p.extended(start)
		o.setProcess(p)
		p.run(ctx)
		o.setProcess(nil)
		if ctx.Err() != nil {
			return nil
		}
		o.options.Logger.LogAttrs(ctx, slog.LevelWarn, "outbox: lost the lease, starting again")
	}
}

func (o *Outbox) setProcess(p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.process = p
}

// warn logs an error. While the database is down, the same things fail many times a second, so
// it logs each once a minute.
func (o *Outbox) warn(ctx context.Context, what string, err error) {
	if err == nil || ctx.Err() != nil {
		return
	}
	now := time.Now()
	o.mu.Lock()
	last, warned := o.warned[what]
	isRepeated := warned && now.Sub(last) < time.Minute
	if !isRepeated {
		o.warned[what] = now
	}
	o.mu.Unlock()
	if !isRepeated {
		o.options.Logger.LogAttrs(ctx, slog.LevelWarn, "outbox: "+what, slog.Any("error", err))
	}
}

// wait reports whether the time passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// run returns when ctx has ended and everything is given back, or when the lease is lost.
func (p *process) run(ctx context.Context) {
	// What is under way goes on after ctx ends, until the grace is over or the lease is lost.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	polling, stopPolling := context.WithCancel(ctx)
	defer stopPolling()
	go func() {
		select {
		case <-p.expired:
			stopPolling()
		case <-polling.Done():
		}
	}()
	var background sync.WaitGroup
	background.Go(func() { p.keepLease(work) })
	background.Go(func() { p.writeAll(work) })
	background.Go(func() { p.sweepAll(polling) })
	p.look(polling, work)

	// From here on nothing starts.
	p.stopDrains()
	p.drains.Wait()
	grace := time.AfterFunc(p.options.Grace, stop)
	p.attempts.Wait()
	grace.Stop()
	if !p.isLost() {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease)
		p.warn(leaving, "can't write what was under way", p.flushAll(leaving))
		p.warn(leaving, "can't give the clients back", p.queue.leave(leaving, p.id))
		cancel()
	}
	stop()
	background.Wait()
}

// extended records that the lease was extended by a call that started at a time.
func (p *process) extended(start time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if until := start.Add(lease * 3 / 4); until.After(p.valid) {
		p.valid = until
	}
}

// mayStart reports whether an attempt may start: the lease is certainly valid.
func (p *process) mayStart() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.lost && time.Now().Before(p.valid)
}

func (p *process) isLost() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lost
}

func (p *process) lose() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.lost {
		p.lost = true
		close(p.expired)
	}
}

// keepLease renews the lease.
func (p *process) keepLease(ctx context.Context) {
	for wait(ctx, lease/4) {
		p.mu.Lock()
		left := time.Until(p.valid)
		p.mu.Unlock()
		if left > lease/2 {
			continue // a write has renewed it
		}
		start := time.Now()
		call, cancel := context.WithTimeout(ctx, lease)
		err := p.queue.renew(call, p.id, lease)
		cancel()
		switch {
		case err == nil:
			p.extended(start)
		case errors.Is(err, errLost):
			p.lose()
			return
		default:
			p.warn(ctx, "can't renew the lease", err)
		}
	}
}

// hint says that clients have fresh notifications.
func (p *process) hint(clients []string) {
	p.mu.Lock()
	var held []*drain
	wake := false
	for _, client := range clients {
		if d := p.lines[client]; d != nil {
			held = append(held, d)
		} else {
			p.hinted[client] = true
			wake = true
		}
	}
	p.mu.Unlock()
	for _, d := range held {
		d.hasFresh()
	}
	if wake {
		signal(p.hints)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// look finds and claims lines until polling ends.
func (p *process) look(polling, work context.Context) {
	after := ""
	lastFound := time.Now()
	next := time.Now()
	for {
		timer := time.NewTimer(time.Until(next))
		hinted, expects := false, false
		select {
		case <-polling.Done():
			timer.Stop()
			return
		case <-p.hints:
			hinted = true
		case <-p.enqueuing:
			expects = true
		case <-timer.C:
		}
		timer.Stop()
		if expects {
			if !wait(polling, minPoll/2) {
				return
			}
			if _, ok := p.expects(time.Now()); !ok {
				continue // it has been committed, and we were told
			}
		}
		if !p.mayStart() {
			next = time.Now().Add(maxPoll)
			continue
		}
		if hinted {
			p.claim(polling, work, p.takeHints())
			continue
		}
		f, err := p.queue.poll(polling, p.id, after, pollLimit)
		if err != nil {
			p.warn(polling, "can't look for notifications", err)
			next, after = time.Now().Add(jitter(time.Second)), ""
			continue
		}
		after = ""
		if f.more {
			after = f.last
		}
		if f.expired {
			n, err := p.queue.bury(polling, p.id)
			p.warn(polling, "can't take over from a process that has ended", err)
			if n > 0 {
				p.options.Logger.LogAttrs(polling, slog.LevelInfo, "outbox: took over from processes that have ended", slog.Int("processes", n))
			}
		}
		news := p.distribute(polling, work, f)
		now := time.Now()
		switch {
		case f.more:
			lastFound, next = now, now
			continue
		case news:
			lastFound = now
		}
		quiet := now.Sub(lastFound)
		if ago, ok := p.expects(now); ok {
			quiet = min(quiet, ago)
		}
		next = now.Add(min(max(quiet/8, minPoll), maxPoll))
	}
}

func (p *process) takeHints() (clients []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client := range p.hinted {
		clients = append(clients, client)
	}
	clear(p.hinted)
	return clients
}

// distribute acts on what a poll found. It reports whether that was news.
func (p *process) distribute(polling, work context.Context, f found) (news bool) {
	var claims []string
	p.mu.Lock()
	held := make(map[*drain]bool)
	for _, client := range f.fresh {
		if d := p.lines[client]; d != nil {
			held[d] = false
		} else {
			claims = append(claims, client)
		}
	}
	for _, client := range f.woken {
		if d := p.lines[client]; d != nil {
			held[d] = true
		}
	}
	for _, client := range f.due {
		if p.lines[client] == nil {
			claims = append(claims, client)
		}
	}
	p.mu.Unlock()
	for d, woken := range held {
		if woken {
			d.wake()
			news = true
		} else if d.hasFresh() {
			news = true
		}
	}
	return p.claim(polling, work, claims) || news
}

// claim claims lines as long as there are turns, and starts to drain them.
func (p *process) claim(polling, work context.Context, clients []string) bool {
	p.mu.Lock()
	free := p.options.Clients - p.active
	p.scarce = len(clients) > free
	p.mu.Unlock()
	clients = clients[:max(0, min(len(clients), free, pollLimit))]
	if len(clients) == 0 {
		return false
	}
	start := time.Now()
	call, cancel := context.WithTimeout(polling, callTimeout)
	defer cancel()
	all, err := p.queue.claim(call, p.id, lease, clients)
	if errors.Is(err, errLost) {
		p.lose()
	}
	if err != nil {
		p.warn(polling, "can't claim clients", err)
		return false
	}
	p.extended(start)
	for _, c := range all {
		p.start(work, c)
	}
	return len(all) > 0
}

func (p *process) start(ctx context.Context, c claimed) {
	now := time.Now()
	l := newLine(c.client, p.sender.PerClient(c.client), p.options.Order)
	l.known = func(hostport string) deliver.Receiver { return p.sender.Receiver(c.client, hostport) }
	l.fresh = true
	for _, s := range c.pauses {
		l.pauses[s.HostPort] = s
		p.sender.Restore(deliver.Receiver{
			Client: c.client, HostPort: s.HostPort, Failures: s.Failures,
			PausedUntil: s.Until, Pause: time.Duration(s.Length) * time.Microsecond, Since: s.Since,
		})
	}
	if c.left < never/2000 {
		l.rescan = now.Add(c.left)
	}
	d := &drain{process: p, kick: make(chan struct{}, 1), line: l, claimed: now}
	if l.order == InOrder {
		l.again[zoneRetry] = &position{due: 1}
	}
	if c.left < -time.Hour { // it was woken: due is zero
		l.wake(now, staleness)
		l.rescan = time.Time{}
	}
	p.mu.Lock()
	p.lines[c.client] = d
	p.active++
	p.mu.Unlock()
	p.drains.Go(func() { d.run(ctx) })
}

// stopDrains makes all drains start nothing more.
func (p *process) stopDrains() {
	p.mu.Lock()
	p.stopping = true
	drains := slices.Collect(maps.Values(p.lines))
	p.mu.Unlock()
	for _, d := range drains {
		d.mu.Lock()
		d.stopped = true
		d.mu.Unlock()
		signal(d.kick)
	}
}

func (p *process) isStopping() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopping
}

func (p *process) isScarce() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scarce
}

func (p *process) setActive(isQuiet bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if isQuiet {
		p.active--
	} else {
		p.active++
	}
}
