package cache

import "context"

// Feed is an optional companion of [webhookcfg.Store], for those who keep copies of what it
// says: it names the clients whose configuration changed.
//
//  1. A call with since "" begins a chain and gives a Reset. Each later call of the
//     chain has the Next of the one before.
//  2. A chain misses nothing: a change that a Resolve could see when a call began
//     is named by that call, or was by an earlier one of the chain, whoever made it
//     and wherever. To name a change is to name its client, or to give a Reset.
//  3. A change is named only once it can be seen: a Resolve that begins when Changes
//     has returned sees it.
//  4. A cursor that the store does not know, or that is too old for it, gives a Reset
//     and no error. In a durable store this holds for cursors from before it was
//     opened again, too.
//  5. A cursor is not used up: after an error the call is made again with the same
//     one, and several chains go on side by side.
//
// A client may be named twice, and without a new change.
// Clauses 14 and 15 of [webhookcfg.Store] hold for Changes as well.
type Feed interface {
	// Changes names the clients that changed after since, which is the Next of an
	// earlier answer or, for the first call, "". It does not wait for a change.
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

// Versioner is an optional companion of [webhookcfg.Store], for those who keep copies where
// there is no [Feed]: it tells whether what they have is still so.
//
//  1. Versions returns a version for each of the clients, in their order, also for
//     one that it knows nothing of.
//  2. Two equal versions of one client, the text "" included, mean that no Resolve of
//     the client could answer anything else in between. So a version never comes
//     back, even if the configuration does.
//  3. As long as nothing changes in the store, versions stay the same.
//
// Clauses 14 and 15 of [webhookcfg.Store] hold for Versions as well.
type Versioner interface {
	// Versions returns the versions of the clients, of which none is "".
	Versions(ctx context.Context, clients []string) ([]string, error)
}

// Notifier is an optional companion of a [Feed] or a [Versioner]: it says when it is
// worth asking them. It is a hint, which can be late, lost, or about nothing.
//
//  1. The channel gets a value after changes, several of which may share one.
//  2. The channel is closed when ctx ends, or when there will be no more hints.
//  3. A hint that nobody takes holds up no change.
type Notifier interface {
	// Notify returns a channel of hints, one of its own for each call.
	Notify(ctx context.Context) <-chan struct{}
}
