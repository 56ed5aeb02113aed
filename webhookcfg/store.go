package webhookcfg

import "context"

// Store keeps the webhook configuration of every client. The package documentation has the
// table of states and operations.
//
//  1. Apply applies the whole change, or nothing.
//  2. Once Apply returned nil, every later Resolve sees the change; in a store that
//     is documented as durable, also after a crash.
//  3. If Apply returns an error, the state is the one before the change or the one
//     after it, never a part of it. The handler responds 503.
//  4. Set of one entity gives it an override with the URL.
//  5. Set of all makes the URL the base and drops every override, also those that
//     are off, at a cost that does not depend on their number.
//  6. Unset of one entity leaves it without a webhook: with a base, its override is
//     off from then on; without one, the override is dropped.
//  7. Unset of all drops the base and every override, at the cost of clause 5.
//  8. Setting what is set already, and unsetting what is not set, succeeds.
//  9. Resolve returns the entity's override if there is one (its URL, or none if it
//     is off), else the base, else the zero Webhook, and a nil error.
//  10. Since is the [Change.Time] of the change that decided, to the microsecond
//     at least.
//  11. The URL is returned byte for byte as it was set.
//  12. No operation of one client changes what another client sees. Names that
//     differ in any byte, letter case too, are different names.
//  13. A change for which [Change.Validate] fails, and an empty client or entity in
//     Resolve, give an error that wraps [ErrInvalidArgument].
//  14. The methods are safe for concurrent use; the operations on one client are
//     linearizable.
//  15. The methods honour ctx: they return soon after it ends, and if it ended before
//     the call they return an error and change nothing. The handler's ctx has a
//     deadline and ends when the client disconnects.
//
// No error text may hold a URL beyond its host and port.
//
// The handler waits for a method that ignores ctx. If you can't rely on your store, verifier
// or prober, wrap the handler in an [http.TimeoutHandler].
type Store interface {
	// Apply makes the change, wholly and durably, or not at all.
	Apply(ctx context.Context, c Change) error
	// Resolve returns the webhook in effect for an entity.
	Resolve(ctx context.Context, client, entity string) (Webhook, error)
}

// Lister lists the overrides of one client. It is an optional interface of a [Store], looked
// up once by [NewHandler].
type Lister interface {
	// List returns the first limit overrides whose entity comes after the given one in byte
	// order; after "" starts with the first. It may return fewer, or none, if the search
	// for more would take too long: only an empty Next means that there are no more. Each
	// page is a state that the client had at one moment, but two pages may be of different
	// moments. The cost of a page depends on limit, not on the number of overrides.
	//
	// An unknown client has an empty page. An empty client, or a limit below 1, gives an
	// error that wraps [ErrInvalidArgument].
	List(ctx context.Context, client, after string, limit int) (Page, error)
}

// Page is a part of a client's configuration.
type Page struct {
	// Base is the webhook of all entities without an override; zero if there is none.
	Base Webhook
	// Overrides are in byte order of their entities.
	Overrides []Override
	// Next is the value of after for the next page; "" on the last page.
	Next string
}

// Override is the entry that one entity has of its own.
type Override struct {
	// Entity is the identifier of the entity.
	Entity string
	// Webhook has the source SourceOverride or SourceOff.
	Webhook Webhook
}
