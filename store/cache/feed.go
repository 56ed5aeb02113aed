package cache

import "context"

// Feed is an optional interface of a [webhookcfg.Store]. It says which clients changed their
// configuration. If your store can't, make it a [Versioner].
//
//  1. The first call of a sequence has since "" and returns a Reset. Each later call passes
//     the Next of the call before.
//  2. A sequence is complete. If a change was visible to Resolve when a call started, that
//     call or an earlier one reports it, regardless of which process made the change. To
//     report a change, name its client or return a Reset.
//  3. Report a change only once it's visible: a Resolve that starts after Changes returned
//     must see it.
//  4. If you don't know the cursor, or it's too old, return a Reset and no error. If a durable
//     store was reopened, earlier cursors can still work, or give a Reset.
//  5. A cursor can be used again. After an error, the cache repeats the call with the same
//     one, and several sequences can run at the same time.
//
// You can name a client twice, or without a new change. Clauses 14 and 15 of
// [webhookcfg.Store] apply to Changes as well.
//
// Your type may have a feed only in some configurations. In the others, return an error that
// wraps [errors.ErrUnsupported] from every call. A [Cache] then falls back to the [Versioner].
type Feed interface {
	// Changes returns the clients that changed after since. Pass the Next of an earlier call,
	// or "" the first time. It doesn't wait for a change.
	Changes(ctx context.Context, since string) (Changes, error)
}

// Changes is the result of [Feed.Changes].
type Changes struct {
	// Clients are the clients that changed, in any order.
	Clients []string
	// Reset means that any client may have changed. Clients is empty then. The first call
	// returns a Reset, and so does any call that would return too many clients.
	Reset bool
	// Next is the cursor for the next call. It's never "".
	Next string
}

// Versioner is an optional interface of a [webhookcfg.Store]. It says whether a client changed
// its configuration, for stores that can't list the clients that did.
//
//  1. Versions returns one version for each client, in the order of the clients. Unknown
//     clients have one too.
//  2. If a client has the same version in two calls, even an empty one, no Resolve between the
//     two calls could have returned a different result. So never reuse a version, not even if
//     an earlier configuration is restored.
//  3. While nothing changes in the store, versions stay the same.
//
// Clauses 14 and 15 of [webhookcfg.Store] apply to Versions as well. You can return an error
// that wraps [errors.ErrUnsupported], as in a Feed.
type Versioner interface {
	// Versions returns a version for each of the clients. The cache never asks for "".
	Versions(ctx context.Context, clients []string) ([]string, error)
}

// Notifier is an optional interface of a [Feed] or a [Versioner]. It tells the cache when to
// poll early. Notifications can be late, lost, or sent without a change.
//
//  1. The channel gets a value after a change. Several changes can share one.
//  2. The channel is closed when ctx ends, or when there will be no more notifications.
//  3. A change never waits until somebody receives its notification.
type Notifier interface {
	// Notify returns a new channel of notifications for each call. End ctx when you no longer
	// need the channel, because the store holds it until then.
	Notify(ctx context.Context) <-chan struct{}
}
