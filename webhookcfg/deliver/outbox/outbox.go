package outbox

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
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

	// MaxBody is the maximum size of a body in bytes. Zero means 256 KiB.
	MaxBody int

	// Clients is how many clients the process sends to at a time. If more have something to
	// send, they take turns of a few seconds. Zero means 256.
	Clients int

	// Grace is how long attempts that are under way may take to complete when the context of
	// [Outbox.Run] ends. Zero means 20 seconds.
	Grace time.Duration

	// KeepFor is how long notifications stay in the tables after they were delivered, given
	// up or dropped. Zero means 30 days. If negative, they're removed at the next sweep.
	KeepFor time.Duration

	// KeepPerClient is how many notifications of each of these states a client keeps. Beyond
	// that, the oldest are removed. Zero means 10,000.
	KeepPerClient int

	// OnEnd is called when a notification has been delivered, given up or dropped, for
	// metrics. It's called once this is written down, must be safe for concurrent use, and
	// should return at once. If nil, it's not called.
	OnEnd func(End)

	// Logger gets errors of the database at level Warn, and what other processes left behind
	// at level Info. If nil, nothing is logged.
	Logger *slog.Logger
}

// Order says what the notifications of one entity wait for.
type Order uint8

// The orders. Notifications of different entities never wait for each other.
const (
	// EachEntity sends the notifications of an entity one after another, in the order in
	// which they were enqueued. While one waits for a retry, the later ones go ahead.
	EachEntity Order = iota
	// InOrder is EachEntity, but later ones never go ahead. If a receiver fails, its entities
	// get nothing until their first notification is delivered or given up, which with the
	// standard schedule can take 76 hours.
	InOrder
	// AnyOrder sends as many notifications of an entity at a time as the limits allow.
	AnyOrder
)

// End is how a notification ended. See [Options.OnEnd].
type End struct {
	// Client is whose notification it was.
	Client string
	// State is Delivered, GivenUp or Dropped.
	State State
	// Reason is why it wasn't delivered. It's empty if it was.
	Reason deliver.Reason
	// Attempts is how many attempts were made.
	Attempts int
	// Took is the time from enqueueing to the end.
	Took time.Duration
}

// State is where a notification stands.
type State uint8

// The states.
const (
	// Waiting: it's due, or waits for a slot, the end of a pause, or a retry.
	Waiting State = iota + 1
	// Delivered: the receiver responded with a status from 200 to 299.
	Delivered
	// GivenUp: the schedule was used up, or the policy refused the URL. [Outbox.SendAgain]
	// starts again with the first attempt.
	GivenUp
	// Dropped: nobody wanted it, since no webhook was in effect or it was stopped.
	Dropped
)

var states = [...]string{Waiting: "waiting", Delivered: "delivered", GivenUp: "given up", Dropped: "dropped"}

// String returns "waiting", "delivered", "given up" or "dropped".
func (s State) String() string {
	if s == 0 || int(s) >= len(states) {
		return fmt.Sprintf("State(%d)", uint8(s))
	}
	return states[s]
}

const (
	defaultMaxBody       = 256 << 10
	defaultClients       = 256
	defaultGrace         = 20 * time.Second
	defaultKeepFor       = 30 * 24 * time.Hour
	defaultKeepPerClient = 10_000
)

func (o *Options) complete() error {
	if min(o.MaxBody, o.Clients, o.KeepPerClient) < 0 || o.Grace < 0 {
		return errors.New("outbox: negative number in Options")
	}
	if o.Order > AnyOrder {
		return fmt.Errorf("outbox: Options.Order is %d, want EachEntity, InOrder or AnyOrder", o.Order)
	}
	if o.Schedule == nil {
		o.Schedule = deliver.StandardSchedule()
	}
	o.MaxBody = cmp.Or(o.MaxBody, defaultMaxBody)
	o.Clients = cmp.Or(o.Clients, defaultClients)
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	o.KeepFor = cmp.Or(o.KeepFor, defaultKeepFor)
	o.KeepPerClient = cmp.Or(o.KeepPerClient, defaultKeepPerClient)
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
	process   *process             // that Run runs; nil if none
	expected  map[string]time.Time // the last Enqueue of clients without Committed
	enqueuing chan struct{}        // has an element after an Enqueue
	warned    map[string]time.Time // when each warning was logged
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
	return &Outbox{queue: queue, sender: sender, options: o, expected: make(map[string]time.Time), enqueuing: make(chan struct{}, 1), warned: make(map[string]time.Time)}
}

// settings returns what all processes must agree on.
func (o *Options) settings() string { return fmt.Sprint(o.Order, []time.Duration(o.Schedule)) }

// backend is the database, as the queue uses it. Times are the database's.
type backend interface {
	// check returns an error if the tables are missing or of another version.
	check(ctx context.Context) error
	// join registers a process. It returns an error if another one has other settings.
	join(ctx context.Context, me int64, lease time.Duration, settings string) error
	// renew extends the lease of a process. The error is errLost if another one has buried it.
	renew(ctx context.Context, me int64, lease time.Duration) error
	// leave gives back all lines of a process.
	leave(ctx context.Context, me int64) error
	// bury removes other processes whose lease has ended, and makes their lines due.
	bury(ctx context.Context, me int64) (processes int, err error)

	// poll finds what the process could do.
	poll(ctx context.Context, me int64, after string, limit int) (found, error)
	// claim takes the lines of clients that nobody has.
	claim(ctx context.Context, me int64, lease time.Duration, clients []string) ([]claimed, error)
	// fresh reads the first notifications that their line hasn't seen.
	fresh(ctx context.Context, client string, limit int) ([]row, error)
	// waiting reads notifications that their line has seen, in the order of their positions.
	waiting(ctx context.Context, client string, from position, limit int) ([]row, error)
	// body reads the body of a notification, or nil if it's gone.
	body(ctx context.Context, seq int64) ([]byte, error)
	// wake makes the line of a client due, whoever has it.
	wake(ctx context.Context, client string) error
	// sweep removes what has been kept for long enough.
	sweep(ctx context.Context, o *Options) error
	// write writes what became of notifications and lines, or nothing. The error is errLost
	// if another process has buried this one.
	write(ctx context.Context, me int64, lease time.Duration, b batch) error
}

var errLost = errors.New("outbox: the lease of this process has ended")

// found is the result of a poll.
type found struct {
	due     []string // clients whose line nobody has
	woken   []string // clients whose line the process has, which were woken
	fresh   []string // clients with fresh notifications whose line the process or nobody has
	expired bool     // the lease of a process has ended
	last    string   // the last client with fresh notifications
	more    bool     // there are others after it
}

// claimed is a line that was claimed.
type claimed struct {
	client string
	left   time.Duration // until it's due
	pauses []pause
}

// row is a waiting notification.
type row struct {
	position
	entity      string
	id          string
	contentType string
	body        []byte // nil if it's long
	attempts    int
	left        time.Duration // until it's due
	since       int64         // identifies the webhook of the last attempt; 0 if none
	age         time.Duration // since it was enqueued
}

// position is where a notification waits: by the time when it's due, which is zero before its
// first attempt, and then by number.
type position struct{ due, seq int64 }

func (p position) compare(q position) int {
	return cmp.Or(cmp.Compare(p.due, q.due), cmp.Compare(p.seq, q.seq))
}

// batch is what a process writes at once.
type batch struct {
	outcomes []outcome
	lines    []lineUpdate
}

// outcome is what became of a notification.
type outcome struct {
	Seq      int64  `json:"n"`
	State    int    `json:"s"`
	Attempts int    `json:"a"`
	Delay    int64  `json:"d"` // in microseconds
	Status   int    `json:"c"`
	Reason   string `json:"r"`
	Since    int64  `json:"w"` // of the webhook, in microseconds
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

// pause is what is known about a receiver that failed.
type pause struct {
	HostPort string    `json:"host"`
	Failures int       `json:"failures"`
	Length   int64     `json:"pause,omitempty"` // in microseconds
	Until    time.Time `json:"until,omitzero"`
	Since    time.Time `json:"since,omitzero"`
}
