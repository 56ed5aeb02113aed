package queue

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/internal/dialect"
)

// process is one identity of Run. It ends when its lease is lost.
//
// The locks, in the order in which they're taken: that of a drain, of the process, of the load, of
// the writer. None is held during a call of the database or the sender.
type process struct {
	*Queue
	identity
	expired   chan struct{}      // closed when the lease is lost
	sightings map[int64]sighting // of other processes, by those who look
	unsure    []string           // clients whose claim failed, and perhaps took them; by those who look
	unread    []string           // clients whose marks couldn't be read; by those who look
	news      *news              // by those who look

	mu       sync.Mutex
	lines    map[string]*drain
	active   [2]int    // lines with work: those that were claimed since they're due, and for news
	scarce   [2]bool   // others of these wait for a turn
	wasNews  bool      // the last turn for which both kinds waited went to one with news
	yields   int       // lines that are due have to give theirs to some with news
	valid    time.Time // no attempt starts after
	lost     bool
	stopping bool
	alive    []int64 // all processes, with this one
	hinted   map[string]bool
	// elsewhere has clients whose line another process had when we wanted it.
	elsewhere map[string]time.Time
	// later has clients with news that belong to others, and when to look whether they have them.
	later map[string]time.Time
	hints chan struct{} // has an element after a hint

	// Each read has an element in one of them, those of lines that are behind in the second.
	reading, catchingUp chan struct{}

	load   load
	writer *writer

	underWay atomic.Int64
	attempts sync.WaitGroup
	drains   sync.WaitGroup
}

// The kinds of turns. Each has half of them while others of the other kind wait, so that who has
// something new doesn't wait behind all backlogs.
const (
	turnDue = iota
	turnNews
)

// maxReads is how many lines read at a time. Those that are behind read one at a time, so that the
// others needn't wait for them.
const maxReads = 3

func newProcess(q *Queue) *process {
	p := &process{
		Queue: q, identity: identity{id: rand.Int64N(1<<62) + 1}, sightings: make(map[int64]sighting), expired: make(chan struct{}), lines: make(map[string]*drain),
		hinted: make(map[string]bool), elsewhere: make(map[string]time.Time), later: make(map[string]time.Time), hints: make(chan struct{}, 1),
		reading: make(chan struct{}, maxReads), catchingUp: make(chan struct{}, 1),
	}
	p.alive = []int64{p.id}
	p.writer = newWriter(p)
	return p
}

// join registers the process, if the tables are as they should be, and finds out what's new from here
// on.
func (p *process) join(ctx context.Context) error {
	call, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := p.options.Check(call); err != nil {
		return err
	}
	newest, err := p.tables.newest(call)
	if err != nil {
		return err
	}
	p.news = startNews(newest)
	return p.tables.join(call, &p.identity, p.options.Settings)
}

// run returns when ctx has ended and everything is given back, or when the lease is lost.
func (p *process) run(ctx context.Context) {
	// What is under way goes on after ctx ends, until the grace is over or the lease is lost.
	work, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	polling, stopPolling := context.WithCancel(ctx)
	defer stopPolling()
	var background sync.WaitGroup
	background.Go(func() {
		select {
		case <-p.expired:
			stopPolling()
		case <-polling.Done():
		}
	})
	background.Go(func() { p.keepLease(work) })
	background.Go(func() { p.writer.run(work) })
	for _, beside := range p.options.Beside {
		background.Go(func() { beside(polling, p.id) })
	}
	p.look(polling, work)

	// From here on nothing starts.
	stopPolling()
	p.stopDrains()
	grace := time.AfterFunc(p.options.Grace, stop)
	p.drains.Wait()
	p.attempts.Wait()
	grace.Stop()
	if !p.isLost() {
		leaving, cancel := context.WithTimeout(context.WithoutCancel(ctx), lease)
		p.options.Warn(leaving, "can't write what was under way", p.writer.flushAll(leaving))
		p.options.Warn(leaving, "can't give the clients back", p.tables.leave(leaving, &p.identity))
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

// ErrSettings means that another process works with other settings.
var ErrSettings = errors.New("outbox: another process with these tables has another Schedule: stop it first, or give both the same Options; one that was killed counts for some seconds more")

// join registers a process. The error is ErrSettings if another one has other settings. One process
// at a time joins, so that each sees the others.
func (t *Tables) join(ctx context.Context, me *identity, settings string) error {
	v := dialect.Values{"me": me.id, "lease": lease.Microseconds(), "settings": settings}
	return t.Transaction(ctx, func(tx *sql.Tx) error {
		if _, err := t.Exec(ctx, tx, `UPDATE {schema} SET version = version WHERE id = 1`+t.Engine.untilIdle, v); err != nil {
			return err
		}
		if _, err := t.Exec(ctx, tx, `INSERT INTO {process} (id, beat, until, settings) VALUES (@me, 0, {now} + @lease, @settings)`, v); err != nil {
			return err
		}
		return t.Query(ctx, tx, `SELECT settings FROM {process} WHERE until >= {now} AND settings <> @settings`, v, func(*sql.Rows) error { return ErrSettings })
	})
}

// leave removes a process, and gives all its lines back.
func (t *Tables) leave(ctx context.Context, me *identity) error {
	return t.Transaction(ctx, func(tx *sql.Tx) error { return t.remove(ctx, tx, me.id) })
}
