package webhookcfg

import "context"

// Store keeps the webhooks of every client. Package [example.com/go-webhookcfg/store] has
// implementations. If you write your own, follow these clauses, which package
// [example.com/go-webhookcfg/store/storetest] checks. The example States has the table of
// states and operations.
//
//  1. Apply applies the whole change, or nothing.
//  2. Once Apply has returned nil, every later Resolve sees the change. If you document your
//     store as durable, that holds after a crash too.
//  3. If Apply returns an error, the state is as before the change or as after it, never in
//     between. The handler responds 503. If the error holds a [Refusal], the state is as
//     before.
//  4. A set of one entity gives it an override with the URL.
//  5. A set of all makes the URL the base and drops every override, off ones too, at a cost
//     that doesn't depend on their number.
//  6. An unset of one entity leaves it without a webhook. If there is a base, the entity's
//     override is off from then on. Otherwise its override is dropped.
//  7. An unset of all drops the base and every override, at the cost of clause 5.
//  8. It isn't an error to set the same URL again, or to unset something that isn't set.
//  9. Resolve returns the entity's override if there is one: SourceOverride with its URL, or
//     SourceOff without a URL. Otherwise it returns the base, or the zero Webhook if there is
//     no base. None of these is an error. A failed read is an error.
//  10. Since is the [Change.Time] of the change that decided, to the microsecond or better.
//  11. The URL comes back byte for byte as it was set. Store what [egress.URL.Reveal] returns,
//     and pass it to [egress.NewURL].
//  12. Nothing that one client does changes what another client sees. Names that differ in
//     any byte, even only in letter case, are different names.
//  13. An invalid change (see [Change.Validate]), and an empty client or entity in Resolve,
//     get an error that wraps [ErrInvalidArgument]. You can refuse names that aren't UTF-8
//     without control characters in the same way, because the handler never sends them.
//  14. The methods are safe for concurrent use, and the operations on one client are
//     linearizable.
//  15. The methods return soon after ctx ends. If it ended before the call, they return an
//     error and change nothing. The handler's ctx has a deadline and ends when the client
//     disconnects.
//
// An error's text must not contain more of a URL than its host and port.
type Store interface {
	// Apply makes the change completely, or not at all.
	Apply(ctx context.Context, c Change) error
	// Resolve returns the webhook in effect for an entity.
	Resolve(ctx context.Context, client, entity string) (Webhook, error)
}
