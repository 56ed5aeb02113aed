package outbox

import (
	"cmp"
	"errors"
	"log/slog"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
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
	// metrics. It's called once this is written down, and not for an attempt during which the
	// notification was sent again. It must be safe for concurrent use, and should return at once.
	// If nil, it's not called.
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
