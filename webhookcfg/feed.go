package webhookcfg

import "context"

// Feed is an optional companion of [Store], for those who keep copies of what it
// says: it names the clients whose configuration changed.
//
// A chain of calls, each with the Next of the one before, misses nothing: a change
// that a Resolve could see when a call began is named by that call, or was named
// by an earlier one of the chain that began when a Resolve could see it. A client
// may be named again without a new change. The methods are safe for concurrent use.
type Feed interface {
	// Changes names the clients that changed after since, which is the Next of an
	// earlier answer or, for the first call, "". It does not wait for a change.
	// What a cursor means is the store's affair; one that the store does not know,
	// or has forgotten, gives no error but a Reset.
	Changes(ctx context.Context, since string) (Changes, error)
}

// Changes is one answer of a [Feed].
type Changes struct {
	// Clients are the identifiers of the clients that changed, in no order.
	Clients []string
	// Reset says that any client may have changed; Clients is empty then. It is the
	// answer to the first call, and where Clients would be too many.
	Reset bool
	// Next is the cursor for the next call; never "".
	Next string
}

// Versioner is an optional companion of [Store], for those who keep copies where
// there is no [Feed]: it tells whether what they have is still so.
type Versioner interface {
	// Versions returns a version for each of the clients, in their order. Two equal
	// versions of one client, the text "" included, mean that no Resolve of the
	// client could answer anything else in between.
	Versions(ctx context.Context, clients []string) ([]string, error)
}

// Waker is an optional companion of a [Feed] or a [Versioner]: it says when it is
// worth asking them. It is a hint, which can be late, lost, or about nothing.
type Waker interface {
	// Wake returns a channel that gets a value after changes, several of which may
	// share one. It is closed when ctx ends, or when there will be no more hints.
	Wake(ctx context.Context) <-chan struct{}
}
