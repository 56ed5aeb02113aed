package deliver

import "context"

// Test is [Sender.Send] for a client that tests its webhook. It makes the attempt even if the
// webhook was stopped or its receiver is paused after failures. If the test succeeds and the
// webhook was stopped, deliveries to it go on. The configuration doesn't change.
//
// If entity is "", Test uses the client's base. The Resolver must then be a
// [webhookcfg.Lister], as the Store of a Cache of package store/cache is.
//
// A client can test one host and port every ten seconds, regardless of the number of its
// webhooks there. Before that, until the end of a pause that the receiver asked for with
// Retry-After, and while the client's limits are reached, the outcome is [Deferred] with a
// Wait.
func (s *Sender) Test(ctx context.Context, client, entity string, m Message) Result {
	return s.send(ctx, client, entity, m, true)
}
