package queue

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/line"
)

// Sender makes the attempts. It's safe for concurrent use, and doesn't panic.
type Sender interface {
	// Limits returns those of a client.
	Limits(client string) line.Limits
	// Base returns a client's base, and whether the client has no overrides. The error is
	// [errors.ErrUnsupported] if nobody can tell.
	Base(ctx context.Context, client string) (base line.Hook, isAlone bool, err error)
	// Webhook returns the webhook in effect for an entity.
	Webhook(ctx context.Context, client, entity string) (line.Hook, error)
	// Begin returns an attempt at the webhook that's in effect now.
	Begin(ctx context.Context, client string, r *line.Row) (Attempt, error)
}

// Attempt is an attempt that may start.
type Attempt interface {
	// Webhook is the one in effect, where the attempt goes. It isn't known if the notification is invalid wherever it goes.
	Webhook() (h line.Hook, isKnown bool)
	// Send makes it. It isn't called if the attempt isn't made after all.
	Send(ctx context.Context) Outcome
}

// Outcome is what became of an attempt.
type Outcome struct {
	line.Result
	// State is Delivered, GivenUp or Dropped if Result.HasEnded is set.
	State int
	// Attempts is how many were made, and Status and Reason are those of this one.
	Attempts int
	Status   int
	Reason   string
	// History is what to add to it.
	History string
	// OnWritten is called once this is written, if it's set.
	OnWritten func()
}

// Options are those of [New].
type Options struct {
	// Clients is how many clients a process sends to at a time.
	Clients int
	// Grace is how long attempts that are under way may take to complete when Run ends.
	Grace time.Duration
	// Settings are those that all processes have to agree on.
	Settings string
	// Check says whether the tables are as they should be, and IsFatal whether Run can't start with an
	// error.
	Check   func(ctx context.Context) error
	IsFatal func(err error) bool
	// Warn logs an error. It's nil if there was none.
	Warn func(ctx context.Context, what string, err error)
	// TookOver and Lost are called when the process took over from others, and when it has lost its
	// lease.
	TookOver func(processes int)
	Lost     func()
	// Beside is what else a process does while it has a lease, until the context ends.
	Beside []func(ctx context.Context, me int64)
}

// Queue sends what waits in tables.
type Queue struct {
	tables  *Tables
	sender  Sender
	options Options

	mu       sync.Mutex
	process  *process             // that Run runs; nil if none
	expected map[string]time.Time // the last Enqueue of clients without Committed
	changed  map[change]bool      // to be marked
	marking  bool                 // a goroutine does

	enqueuing chan struct{} // has an element after an Enqueue
	changes   atomic.Uint64
}

// change is a webhook that was set or unset.
type change struct{ client, entity string }

// New returns a queue.
func New(t *Tables, s Sender, o Options) *Queue {
	return &Queue{tables: t, sender: s, options: o, expected: make(map[string]time.Time), changed: make(map[change]bool), enqueuing: make(chan struct{}, 1)}
}

// callTimeout is for a call of the database. Locks in the database, and not the time, keep it from
// being too late.
const callTimeout = 15 * time.Second

// Run sends what waits until ctx ends. The error is ErrSettings, or one that's fatal at the start.
func (q *Queue) Run(ctx context.Context) error {
	hasStarted := false
	for {
		p := newProcess(q)
		start := time.Now()
		err := p.join(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrSettings), err != nil && !hasStarted && q.options.IsFatal(err):
			return err
		case err != nil:
			q.options.Warn(ctx, "can't start", err)
			Wait(ctx, Jitter(time.Second))
			continue
		}
		hasStarted = true
		p.extended(start)
		q.setProcess(p)
		p.run(ctx)
		q.setProcess(nil)
		if ctx.Err() != nil {
			return nil
		}
		q.options.Lost()
	}
}

func (q *Queue) setProcess(p *process) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.process = p
}

func (q *Queue) running() *process {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.process
}

// Committed says that notifications of clients have been committed.
func (q *Queue) Committed(clients ...string) {
	q.mu.Lock()
	for _, client := range clients {
		delete(q.expected, client)
	}
	p := q.process
	q.mu.Unlock()
	if p != nil {
		p.hint(clients)
	}
}

const (
	maxExpected = 1000
	// expectFor is how long a process looks often after an Enqueue.
	expectFor = 100 * time.Millisecond
)

// Expect makes Run look for a client's notification soon, since it's probably committed soon.
func (q *Queue) Expect(client string) {
	q.mu.Lock()
	if q.process != nil && len(q.expected) < maxExpected {
		q.expected[client] = time.Now()
	}
	q.mu.Unlock()
	signal(q.enqueuing)
}

// expects returns how long ago the last notification was enqueued whose commit we may not have seen.
func (q *Queue) expects(now time.Time) (ago time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for client, at := range q.expected {
		if now.Sub(at) > expectFor {
			delete(q.expected, client)
		} else if !ok || now.Sub(at) < ago {
			ago, ok = now.Sub(at), true
		}
	}
	return ago, ok
}

// maxChanged is how many webhooks can have changed that weren't marked yet.
const maxChanged = 10_000

var errChanged = errors.New("outbox: too many webhooks have changed at a time")

// Changed says that the webhook of an entity, or all of a client if that's "", was set or unset. It
// writes that on the side.
func (q *Queue) Changed(client, entity string) {
	c := change{client, entity}
	q.mu.Lock()
	isFull := !q.changed[c] && len(q.changed) >= maxChanged
	if !isFull {
		q.changed[c] = true
	}
	start := !isFull && !q.marking
	q.marking = q.marking || start
	q.mu.Unlock()
	if isFull {
		q.options.Warn(context.Background(), "can't send at once what waits", errChanged)
	}
	if start {
		go q.markChanged()
	}
}

// markChanged marks what has changed until there's nothing.
func (q *Queue) markChanged() {
	for {
		q.mu.Lock()
		all := slices.Collect(maps.Keys(q.changed))
		clear(q.changed)
		q.marking = len(all) > 0
		q.mu.Unlock()
		if len(all) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
		for _, c := range all {
			q.options.Warn(context.Background(), "can't send at once what waits", q.Mark(ctx, c.client, c.entity))
		}
		cancel()
	}
}

// Mark is Changed for those who want to wait, and to know the error.
func (q *Queue) Mark(ctx context.Context, client, entity string) error {
	if err := q.tables.mark(ctx, client, entity); err != nil {
		return err
	}
	q.Woken(client)
	return nil
}

// Woken says that the line of a client was made due, so that this process needn't find that out.
func (q *Queue) Woken(client string) {
	q.changes.Add(1)
	if p := q.running(); p != nil {
		p.hintMark(client)
	}
}

// Figures are those of a queue.
type Figures struct {
	// Held and Active are the clients that the process has, and of them those that it's sending to.
	Held, Active int
	// UnderWay is the number of its attempts.
	UnderWay int
	// Changes is how often it was told that a webhook has changed.
	Changes uint64
}

// Figures returns those of this process.
func (q *Queue) Figures() Figures {
	f := Figures{Changes: q.changes.Load()}
	if p := q.running(); p != nil {
		p.mu.Lock()
		f.Held, f.Active = len(p.lines), p.active[0]+p.active[1]
		p.mu.Unlock()
		f.UnderWay = int(p.underWay.Load())
	}
	return f
}
