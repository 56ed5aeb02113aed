package outbox

import (
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
