package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/redact"
	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox/internal/queue"
)

// Options are the options of [New]. The zero value is safe to use. All processes with the
// same tables need the same Schedule.
type Options struct {
	// Prefix starts the names of all tables, as in [sqlstore.Options]. The default is "wh_".
	// The outbox and the store can have the same prefix.
	Prefix string

	// Schedule says when to send a notification again after a failure. If nil, it's
	// [deliver.StandardSchedule]: ten attempts over 76 hours.
	Schedule deliver.Schedule

	// Clients is how many clients the process sends to at a time. If more have something to
	// send, they take turns of a few seconds, and those that have waited longest are next. Zero
	// means 256.
	Clients int

	// Grace is how long attempts that are under way may take to complete when the context of
	// [Outbox.Run] ends. Those that don't are made again, so the receiver may get a notification
	// twice. Let whoever ends the process wait for longer than that. Zero means five seconds more
	// than the Timeout of the Sender.
	Grace time.Duration

	// KeepDelivered is how long notifications stay in the tables that were delivered. The zero
	// values mean a day, and 1,000 for each client.
	KeepDelivered Keep

	// KeepUndelivered is the same for those that were given up, and for those that were dropped. The
	// zero values mean 30 days, and 10,000 of each for each client.
	KeepUndelivered Keep

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
	// moreGrace is for what's to be looked up before an attempt, and written after it.
	moreGrace = 5 * time.Second
)

// Keep says how long notifications stay in the tables after they have ended.
type Keep struct {
	// For is how long. If negative, they're removed at the next sweep.
	For time.Duration
	// PerClient is how many a client keeps. Beyond that, the oldest are removed.
	PerClient int
}

// or returns k with the defaults for zero values.
func (k Keep) or(defaults Keep) Keep {
	return Keep{cmp.Or(k.For, defaults.For), cmp.Or(k.PerClient, defaults.PerClient)}
}

func (o *Options) complete(sender *deliver.Sender) error {
	if min(o.Clients, o.KeepUndelivered.PerClient, o.KeepDelivered.PerClient) < 0 || o.Grace < 0 {
		return errors.New("outbox: negative number in Options")
	}
	if o.Schedule == nil {
		o.Schedule = deliver.StandardSchedule()
	}
	o.Clients = cmp.Or(o.Clients, defaultClients)
	o.Grace = cmp.Or(o.Grace, sender.Timeout()+moreGrace)
	o.KeepDelivered = o.KeepDelivered.or(Keep{For: 24 * time.Hour, PerClient: 1000})
	o.KeepUndelivered = o.KeepUndelivered.or(Keep{For: 30 * 24 * time.Hour, PerClient: 10_000})
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return nil
}

// Outbox is a queue of notifications in a database. It is safe for concurrent use. There is
// nothing to close; you close the database handle yourself.
type Outbox struct {
	tables    *tables
	queue     *queue.Queue
	sender    *deliver.Sender
	seed      maphash.Seed // tells URLs apart
	options   Options
	resending chan struct{} // has an element after a SendAgain of many

	mu      sync.Mutex
	running bool
	ended   error                // with which the last Run ended, until it runs again
	warned  map[string]time.Time // when each warning was logged
}

// New returns an outbox with tables in the database behind db. It does no I/O. A process that
// only enqueues can pass a nil sender; then a body can have 256 KiB. You can pass nil options.
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
	if err := o.complete(sender); err != nil {
		return nil, err
	}
	tables, err := newTables(db, dialect, o.Prefix)
	if err != nil {
		return nil, err
	}
	box := &Outbox{
		tables: tables, sender: sender, seed: maphash.MakeSeed(), options: o, resending: make(chan struct{}, 1), warned: make(map[string]time.Time),
	}
	box.queue = queue.New(tables.Tables, attempts{box}, queue.Options{
		Clients: o.Clients, Grace: o.Grace, Settings: fmt.Sprint([]time.Duration(o.Schedule)),
		Check: tables.check, IsFatal: isFatal, Warn: box.warn, TookOver: box.tookOver, Lost: box.lost,
		Beside: []func(ctx context.Context, me int64){box.resendAll, box.sweepAll, box.reportAll},
	})
	return box, nil
}

// Run sends notifications until ctx ends. Then it starts no more attempts, waits for those
// under way for at most [Options.Grace], writes down what became of them, and gives its
// clients back, so that other processes go on at once. It then returns nil.
//
// Run it once per process, in any number of processes: they share the clients among themselves. While
// the database is down, Run waits, and so it does if the tables go missing once it has started, for
// example while a backup is restored. What a killed process was doing, others do again within five
// seconds.
//
// Run returns an error at once if it can't work: without a sender, if tables are missing when it
// starts, if they're of another version, or if another process has another [Options.Schedule].
// [Options.Logger] gets that error, too, and [Outbox.Healthy] returns it until you call Run again.
func (o *Outbox) Run(ctx context.Context) error {
	o.mu.Lock()
	isRunning := o.running
	if !isRunning {
		o.running, o.ended = true, nil
	}
	o.mu.Unlock()
	var err error
	switch {
	case isRunning:
		err = errors.New("outbox: Run is running already")
	case o.sender == nil:
		err = errors.New("outbox: Run without a sender: pass one to New")
	default:
		err = o.queue.Run(ctx)
	}
	if !isRunning {
		o.mu.Lock()
		o.running, o.ended = false, err
		o.mu.Unlock()
	}
	if err != nil {
		o.options.Logger.LogAttrs(ctx, slog.LevelError, "outbox: Run has ended with an error", slog.Any("error", redact.PrintableError(err)))
	}
	return err
}

// isFatal reports whether Run can't start with an error.
func isFatal(err error) bool { return errors.Is(err, ErrNewerSchema) || isWithoutTables(err) }
