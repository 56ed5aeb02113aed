package outbox

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/redact"
)

// callTimeout is for a call of the database. Locks in the database, and not the time,
// keep it from being too late.
const callTimeout = 15 * time.Second

// process is one identity of Run. It ends when its lease is lost.
type process struct {
	*Outbox
	identity
	expired   chan struct{}      // closed when the lease is lost
	sightings map[int64]sighting // of other processes, by those who look
	unsure    []string           // clients whose claim failed, and perhaps took them; by those who look

	mu     sync.Mutex
	lines  map[string]*drain
	active int       // lines with work
	valid  time.Time // no attempt starts after
	lost   bool
	hinted map[string]bool
	scarce bool // others wait for a turn
	// elsewhere has clients whose line another process had when we wanted it.
	elsewhere map[string]time.Time
	stopping  bool
	hints     chan struct{} // has an element after a hint

	// Each read has an element in one of them, those of lines that are behind in the second.
	reading, catchingUp chan struct{}

	pace   *pace
	writer *writer

	underWay atomic.Int64
	attempts sync.WaitGroup
	drains   sync.WaitGroup
}

func newProcess(o *Outbox) *process {
	p := &process{
		Outbox: o, identity: identity{id: rand.Int64N(1<<62) + 1}, sightings: make(map[int64]sighting), expired: make(chan struct{}), lines: make(map[string]*drain),
		hinted: make(map[string]bool), elsewhere: make(map[string]time.Time), reading: make(chan struct{}, maxReads),
		catchingUp: make(chan struct{}, 1), hints: make(chan struct{}, 1),
	}
	p.writer = newWriter(p)
	p.pace = newPace(func() bool {
		outcomes, _ := p.writer.unwritten()
		return outcomes > 2*maxBatch
	})
	return p
}

// Run sends notifications until ctx ends. Then it starts no more attempts, waits for those
// under way for at most [Options.Grace], writes down what became of them, and gives its
// clients back, so that other processes go on at once. It then returns nil.
//
// Run it once per process, in any number of processes. While the database is down, Run waits, and
// so it does if the tables go missing once it has started, for example while a backup is restored.
// What a killed process was doing, others do again within five seconds.
//
// Run returns an error at once if it can't work: without a sender, if tables are missing when it
// starts, if they're of a later version, or if another process has another [Options.Schedule] or
// [Options.Order]. [Options.Logger] gets that error, too, and [Outbox.Healthy] returns it until you call
// Run again.
func (o *Outbox) Run(ctx context.Context) error {
	err := o.work(ctx)
	if err != nil {
		o.options.Logger.LogAttrs(ctx, slog.LevelError, "outbox: Run has ended with an error", slog.Any("error", redact.PrintableError(err)))
	}
	return err
}

// work sends notifications until ctx ends. It returns an error if it can't.
func (o *Outbox) work(ctx context.Context) (err error) {
	o.mu.Lock()
	isRunning := o.running
	if !isRunning {
		o.running, o.ended = true, nil
	}
	o.mu.Unlock()
	if isRunning {
		return errors.New("outbox: Run is running already")
	}
	defer func() {
		o.mu.Lock()
		o.running, o.ended = false, err
		o.mu.Unlock()
	}()
	if o.sender == nil {
		return errors.New("outbox: Run without a sender: pass one to New")
	}
	hasJoined := false
	for {
		p := newProcess(o)
		start := time.Now()
		switch err := p.join(ctx); {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, errSettings), errors.Is(err, ErrNewerSchema), isWithoutTables(err) && !hasJoined:
			return err
		case err != nil:
			o.warn(ctx, "can't start", err)
			wait(ctx, jitter(time.Second))
			continue
		}
		hasJoined = true
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

// join registers the process, if it knows the tables.
func (p *process) join(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := p.queue.check(call); err != nil {
		return err
	}
	return p.queue.join(call, &p.identity, lease, p.options.settings())
}

func (o *Outbox) setProcess(p *process) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.process = p
}

// wait reports whether the time passed before ctx ended.
func wait(ctx context.Context, d time.Duration) bool {
	// Timers that are due at once crash the race detector of Go 1.26 in a bubble of
	// testing/synctest, if two goroutines run them at the same time.
	if d <= 0 {
		return ctx.Err() == nil
	}
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
	background.Go(func() { p.writer.run(work) })
	background.Go(func() { p.resendAll(polling) })
	background.Go(func() { p.pace.run(work) })
	background.Go(func() { p.sweepAll(polling) })
	background.Go(func() { p.reportAll(polling) })
	p.look(polling, work)

	// From here on nothing starts.
	p.stopDrains()
	grace := time.AfterFunc(p.options.Grace, stop)
	p.drains.Wait()
	p.attempts.Wait()
	grace.Stop()
	if !p.isLost() {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease)
		p.warn(leaving, "can't write what was under way", p.writer.flushAll(leaving))
		p.warn(leaving, "can't give the clients back", p.queue.leave(leaving, &p.identity))
		cancel()
	}
	stop()
	background.Wait()
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
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

var errSettings = errors.New("outbox: another process with these tables has another Schedule or Order: stop it first, or give both the same Options")

func (t *tables) join(ctx context.Context, me *identity, lease time.Duration, settings string) error {
	return t.transaction(ctx, func(tx *sql.Tx) error {
		v := values{"me": me.id, "lease": lease.Microseconds(), "settings": settings}
		for _, s := range []statement{t.queries.lockJoin, t.queries.join} {
			if _, err := exec(ctx, tx, s, v); err != nil {
				return err
			}
		}
		return query(ctx, tx, t.queries.others, v, func(*sql.Rows) error { return errSettings })
	})
}

func (t *tables) leave(ctx context.Context, me *identity) error {
	return t.transaction(ctx, func(tx *sql.Tx) error { return t.remove(ctx, tx, me.id) })
}
