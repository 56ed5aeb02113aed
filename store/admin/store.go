package admin

import "context"

// ClientLister is an optional interface of a [webhookcfg.Store]. It lists the clients that have
// something set.
//
//  1. A walk starts with the cursor "" and passes the Next of each page to the next call. Only
//     an empty Next ends it: pages can be short or empty.
//  2. A client that has a base or an override during the whole walk is listed exactly once, in
//     any order. Any other client can be missing or listed.
//  3. A limit below 1, or a cursor that the store doesn't recognize as its own, gives an error
//     that wraps [webhookcfg.ErrInvalidArgument].
//
// Clauses 14 and 15 of [webhookcfg.Store] apply to ListClients as well. If your type wraps
// another store that isn't a ClientLister, return an error that wraps [errors.ErrUnsupported].
type ClientLister interface {
	// ListClients returns at most limit clients that come after the cursor. The cost of a
	// page depends on limit, not on the number of clients or overrides.
	ListClients(ctx context.Context, cursor string, limit int) (ClientPage, error)
}

// ClientPage is a part of a store's clients.
type ClientPage struct {
	// Clients are identifiers of clients, in the store's order.
	Clients []string
	// Next is the cursor for the next page, or "" on the last page. Only the store that
	// returned it understands it.
	Next string
}

// Eraser is an optional interface of a [webhookcfg.Store]. It removes the remains of unsets, such
// as old records and empty rows. If your store keeps nothing after an unset of all, you don't
// need it.
//
//  1. Erase never changes a webhook. If anything is set for the client, it does nothing and
//     returns nil.
//  2. It hides no change from a reader that was away: a Feed still reports what changed
//     before it, and a version is never reused.
//  3. An empty client gives an error that wraps [webhookcfg.ErrInvalidArgument].
//
// Clauses 14 and 15 of [webhookcfg.Store] apply to Erase as well. If your type wraps another
// store that isn't an Eraser, return an error that wraps [errors.ErrUnsupported].
type Eraser interface {
	// Erase removes everything that the store can remove of a client with nothing set. Say in
	// your store's documentation what remains, where, and for how long.
	Erase(ctx context.Context, client string) error
}
