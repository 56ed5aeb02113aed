package admin

import "context"

// ClientLister is an optional interface of a [webhookcfg.Store]. It lists the clients that have
// something set.
//
//  1. A walk starts with the cursor "" and passes the Next of each page to the next call.
//     It ends with an empty Next, and only there: pages may be short or empty.
//  2. A client that has a base or an override during the whole walk is listed exactly once,
//     in an order of the store's own. Any other client may be missing or listed.
//  3. A limit below 1, and a cursor that the store doesn't recognize as its own, give an
//     error that wraps [webhookcfg.ErrInvalidArgument].
//
// Clauses 14 and 15 of [webhookcfg.Store] apply to ListClients as well. A type that wraps
// another store returns an error that wraps [errors.ErrUnsupported] if that store isn't a
// ClientLister.
type ClientLister interface {
	// ListClients returns at most limit clients that come after the cursor. The cost of a
	// page depends on limit, not on the number of clients or overrides.
	ListClients(ctx context.Context, cursor string, limit int) (ClientPage, error)
}

// ClientPage is a part of the clients of a store.
type ClientPage struct {
	// Clients are identifiers of clients, in an order of the store's own.
	Clients []string
	// Next is the cursor of the next page; "" on the last page. It means something only to the
	// store that returned it.
	Next string
}

// Eraser is an optional interface of a [webhookcfg.Store]. It removes what unsets leave
// behind, such as old records and empty rows. A store without it keeps nothing after an unset
// of all.
//
//  1. Erase never changes a webhook: if anything is set for the client, it does nothing and
//     returns nil.
//  2. It hides no change from a reader that was away: a Feed still reports what changed
//     before it, and a version is never reused.
//  3. An empty client gives an error that wraps [webhookcfg.ErrInvalidArgument].
//
// Clauses 14 and 15 of [webhookcfg.Store] apply to Erase as well. A type that wraps another
// store returns an error that wraps [errors.ErrUnsupported] if that store isn't an Eraser.
type Eraser interface {
	// Erase removes everything that the store may remove of a client with nothing set. The
	// store's documentation says what remains, where, and until when.
	Erase(ctx context.Context, client string) error
}
