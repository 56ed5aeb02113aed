package line

import "time"

// Row is a waiting notification that was read from the tables.
type Row struct {
	Seq      int64 // its number in the tables
	Enqueued int64 // tells it from an earlier one with its number, which was lost in a failover
	Resent   int64 // when it was last sent again
	Entity   string
	Group    Group
	Attempts int
	Wait     time.Duration // until it's due

	Waited time.Duration // since it was enqueued or sent again, until it was read

	// What to send, how long ago it was enqueued, and when it was read. The line doesn't look at these.
	ID, ContentType string
	Body            []byte
	Age             time.Duration
	Taken           time.Time

	of         *webhook
	state      state
	to         Group // to which it's about to move, if it's leaving; unsorted if it has ended
	isTried    bool
	isMoving   bool  // it counts as leaving for its webhook
	isResent   bool  // since it was read, perhaps
	host       *host // that it has a slot of; nil if it isn't under way
	setting    int64 // under which it was started
	isUnproven bool  // its webhook hadn't worked the last time when it was started
}

// IsProven reports whether the last attempt at its webhook was a success when this one was started.
func (r *Row) IsProven() bool { return !r.isUnproven }

// state is where a notification in the window stands. It moves from one to the next, and never
// back, except from started to queued if the attempt wasn't made.
type state uint8

const (
	queued  state = iota
	started       // an attempt is under way
	leaving       // and out of the window once that is written
)

// Write is what to write about a notification.
type Write struct {
	// Row is the notification.
	Row *Row
	// HasEnded says that it doesn't wait any more. Otherwise it's in this group from now on, and
	// due after a time.
	HasEnded bool
	Group    Group
	Delay    time.Duration
}

// stays returns the group in which a notification is found if we're killed.
func (r *Row) stays() Group {
	if r.state == leaving {
		return r.to
	}
	return r.Group
}
