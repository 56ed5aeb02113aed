package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// Options are the options of [New]. The zero value is safe to use. All processes with the
// same tables need the same Schedule and Order.
type Options struct {
	// Prefix starts the names of all tables, as in [sqlstore.Options]. The default is "wh_".
	// The outbox and the store can have the same prefix.
	Prefix string

	// Schedule says when to send a notification again after a failure. If nil, it's
	// [deliver.StandardSchedule]: ten attempts over 76 hours.
	Schedule deliver.Schedule

	// Order says what the notifications of one entity wait for. The default is [EachEntity].
	Order Order

	// MaxBody is the maximum size of a body in bytes. It can't be more than the Sender's. Zero
	// means the Sender's, or 256 KiB without a Sender.
	MaxBody int

	// Clients is how many clients the process sends to at a time. If more have something to
	// send, they take turns of a few seconds, and those that have waited longest are next. Zero
	// means 256.
	Clients int

	// Grace is how long attempts that are under way may take to complete when the context of
	// [Outbox.Run] ends. Those that don't are made again, so the receiver may get a notification
	// twice. Make it a few seconds more than the Timeout of the Sender, and let whoever ends the
	// process wait for longer than that. Zero means 20 seconds, for the Sender's default of 15.
	Grace time.Duration

	// KeepFor is how long notifications stay in the tables after they were given up or
	// dropped. Zero means 30 days. If negative, they're removed at the next sweep.
	KeepFor time.Duration

	// KeepPerClient is how many notifications of each of these states a client keeps. Beyond
	// that, the oldest are removed. Zero means 10,000.
	KeepPerClient int

	// KeepDelivered and KeepDeliveredPerClient are the same for notifications that were
	// delivered. Zero means a day and 1,000.
	KeepDelivered          time.Duration
	KeepDeliveredPerClient int

	// OnEnd is called when a notification has been delivered, given up or dropped, for
	// metrics. It's called once this is written down, must be safe for concurrent use, and
	// should return at once. If nil, it's not called.
	OnEnd func(End)

	// Logger gets errors of the database at level Warn, and what other processes left behind
	// at level Info. If [Outbox.Run] ends with an error, it gets that at level Error. While
	// notifications are overdue, it also gets the clients that wait longest, how much waits and
	// why, once a minute, from one of the processes. If nil, nothing is logged.
	Logger *slog.Logger
}

const (
	// defaultClients is how many clients a process sends to at a time. Lines that it holds
	// without anything to send don't count.
	defaultClients = 256
	defaultGrace   = 20 * time.Second

	defaultKeepFor       = 30 * 24 * time.Hour
	defaultKeepPerClient = 10_000

	defaultKeepDelivered          = 24 * time.Hour
	defaultKeepDeliveredPerClient = 1000
)

func (o *Options) complete() error {
	if min(o.MaxBody, o.Clients, o.KeepPerClient, o.KeepDeliveredPerClient) < 0 || o.Grace < 0 {
		return errors.New("outbox: negative number in Options")
	}
	if o.Order > AnyOrder {
		return fmt.Errorf("outbox: Options.Order is %d, want EachEntity, InOrder or AnyOrder", o.Order)
	}
	if o.Schedule == nil {
		o.Schedule = deliver.StandardSchedule()
	}
	o.Clients = cmp.Or(o.Clients, defaultClients)
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	o.KeepFor = cmp.Or(o.KeepFor, defaultKeepFor)
	o.KeepPerClient = cmp.Or(o.KeepPerClient, defaultKeepPerClient)
	o.KeepDelivered = cmp.Or(o.KeepDelivered, defaultKeepDelivered)
	o.KeepDeliveredPerClient = cmp.Or(o.KeepDeliveredPerClient, defaultKeepDeliveredPerClient)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Outbox is a queue of notifications in a database. It is safe for concurrent use. There is
// nothing to close; you close the database handle yourself.
type Outbox struct {
	tables  *tables
	queue   backend
	sender  *deliver.Sender
	options Options

	mu        sync.Mutex
	running   bool
	ended     error                // with which the last Run ended, until it runs again
	process   *process             // that Run runs; nil if none
	expected  map[string]time.Time // the last Enqueue of clients without Committed
	enqueuing chan struct{}        // has an element after an Enqueue
	resending chan struct{}        // has an element after a SendAgain of many
	changed   map[string]struct{}  // clients to wake
	waking    bool                 // a goroutine does
	warned    map[string]time.Time // when each warning was logged
	wakes     atomic.Uint64        // of its processes
}

// New returns an outbox with tables in the database behind db. It does no I/O. A process that
// only enqueues can pass a nil sender. You can pass nil options.
//
// New returns an error if db is nil, or if the dialect or an option is invalid.
func New(db *sql.DB, dialect sqlstore.Dialect, sender *deliver.Sender, opts *Options) (*Outbox, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if db == nil {
		return nil, errors.New("outbox: no database: db is nil")
	}
	if sender != nil && o.MaxBody > sender.MaxBody() {
		return nil, fmt.Errorf("outbox: Options.MaxBody is %d, want at most the sender's, which is %d", o.MaxBody, sender.MaxBody())
	}
	o.MaxBody = cmp.Or(o.MaxBody, sender.MaxBody())
	if err := o.complete(); err != nil {
		return nil, err
	}
	tables, err := newTables(db, dialect, o.Prefix)
	if err != nil {
		return nil, err
	}
	box := newOutbox(tables, sender, o)
	box.tables = tables
	return box, nil
}

func newOutbox(queue backend, sender *deliver.Sender, o Options) *Outbox {
	return &Outbox{queue: queue, sender: sender, options: o, expected: make(map[string]time.Time), enqueuing: make(chan struct{}, 1), resending: make(chan struct{}, 1), warned: make(map[string]time.Time), changed: make(map[string]struct{})}
}

// settings returns what all processes must agree on.
func (o *Options) settings() string { return fmt.Sprint(o.Order, []time.Duration(o.Schedule)) }

// backend is the database, as the queue uses it. Times are the database's.
type backend interface {
	// check returns an error if the tables are missing or of another version.
	check(ctx context.Context) error
	// join registers a process. It returns an error if another one has other settings.
	join(ctx context.Context, me *identity, lease time.Duration, settings string) error
	// renew extends the lease of a process. The error is errLost if another one has buried it,
	// or if the tables have lost a sign of life.
	renew(ctx context.Context, me *identity, lease time.Duration) error
	// leave gives back all lines of a process.
	leave(ctx context.Context, me *identity) error
	// bury removes processes without a sign of life after the given one, and makes their lines
	// due.
	bury(ctx context.Context, dead map[int64]int64) (processes int, err error)

	// poll finds what the process could do.
	poll(ctx context.Context, me int64, after string, limit int) (found, error)
	// claim takes the lines of clients that nobody has. It makes the lines of those due that
	// are waiting for a turn.
	claim(ctx context.Context, me *identity, lease time.Duration, clients, waiting []string) ([]claimed, error)
	// fresh reads the first notifications that their line hasn't seen.
	fresh(ctx context.Context, client string, limit int) ([]row, error)
	// waiting reads notifications that their line has seen, in the order of their positions.
	waiting(ctx context.Context, client string, from position, limit int) ([]row, error)
	// body reads the body of a notification, or nil if it's gone.
	body(ctx context.Context, seq, enqueued int64) ([]byte, error)
	// wake makes the line of a client due, whoever has it.
	wake(ctx context.Context, client string) error
	// leads reports whether a process is the one that logs what is overdue.
	leads(ctx context.Context, me int64) (bool, error)
	// stats returns figures about the whole queue.
	stats(ctx context.Context) (Stats, error)
	// resending returns some of the clients that send many notifications again, those that come
	// after one.
	resending(ctx context.Context, after string) (clients []string, err error)
	// resendSome makes some of these notifications of a client due.
	resendSome(ctx context.Context, client string) error
	// sweep removes what has been kept for long enough.
	sweep(ctx context.Context, o *Options) error
	// write writes what became of notifications and lines, or nothing. The error is errLost
	// as for renew.
	write(ctx context.Context, me *identity, lease time.Duration, b batch) error
}
