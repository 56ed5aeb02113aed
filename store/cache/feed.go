package cache

import "context"

// Feed is an optional interface of a [webhookcfg.Store]. It reports which clients changed
// their configuration.
//
//  1. A call with since "" starts a sequence of calls and returns a Reset. Each later
//     call of the sequence passes the Next of the one before.
//  2. A sequence is complete: a change that was visible to Resolve when a call started is
//     reported by that call or by an earlier one of the sequence, whichever process made
//     it. To report a change is to name its client or to return a Reset.
//  3. A change is reported only once it is visible: a Resolve that starts after Changes
//     returned sees it.
//  4. A cursor that is unknown to the store, or too old for it, gives a Reset and no
//     error. In a durable store this includes cursors from before it was reopened.
//  5. A cursor can be used again: after an error the call is repeated with the same one,
//     and several sequences can run concurrently.
//
// A client may be named twice, or without a new change. Clauses 14 and 15 of
// [webhookcfg.Store] apply to Changes as well. A type whose feed depends on its
// configuration returns an error that wraps [errors.ErrUnsupported] from every call where it
// has none; a [Cache] makes one such call, and falls back to the Versioner.
type Feed interface {
	// Changes returns the clients that changed after since, which is the Next of an
	// earlier call or, in the first one, "". It does not wait for a change.
	Changes(ctx context.Context, since string) (Changes, error)
}

// Changes is the result of [Feed.Changes].
type Changes struct {
	// Clients are the identifiers of the clients that changed, in no particular order.
	Clients []string
	// Reset reports that any client may have changed; Clients is empty then. The first
	// call returns it, and any call for which Clients would be too long.
	Reset bool
	// Next is the cursor for the next call; never "".
	Next string
}

// Versioner is an optional interface of a [webhookcfg.Store]. It detects whether a client
// changed its configuration, in stores that cannot report which clients did.
//
//  1. Versions returns one version for each client, in the order of the clients, also for
//     unknown clients.
//  2. Equal versions of one client, also if empty, mean that no Resolve of the client could
//     have returned a different result between the two calls. Therefore a version is never
//     reused, even if an earlier configuration is restored.
//  3. While nothing changes in the store, versions stay the same.
//
// Clauses 14 and 15 of [webhookcfg.Store] apply to Versions as well. Like a Feed, it may
// be unsupported.
type Versioner interface {
	// Versions returns the versions of the clients. No client is "".
	Versions(ctx context.Context, clients []string) ([]string, error)
}

// Notifier is an optional interface of a [Feed] or a [Versioner]. It announces when a poll
// is worthwhile. A notification can be late, lost or unfounded.
//
//  1. The channel receives a value after a change; several changes may share one.
//  2. The channel is closed when ctx ends, or when there will be no more notifications.
//  3. An unreceived notification never blocks a change.
type Notifier interface {
	// Notify returns a channel of notifications, a separate one for each call. The caller
	// must end ctx, because the store holds the channel until then.
	Notify(ctx context.Context) <-chan struct{}
}
