// Package storetest is a conformance suite for stores: whoever writes a
// [webhookcfg.Store] runs it in a test of its own.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{Open: func(testing.TB) webhookcfg.Store { return mystore.New() }})
//	}
//
// # What it asks
//
// There is a case, and so a subtest, for every clause in the documentation of
// [webhookcfg.Store], in their order and named by their number, and for every rule
// of [webhookcfg.Lister], [cache.Feed], [cache.Versioner] and
// [cache.Notifier]. Then come random histories, which are compared with a trivial
// model. A failure says what was done, what came of it, and the rule.
//
// Abilities that a store need not have are found, not declared: the companions by
// their methods, durability by [Harness.Reopen], and that several processes can share
// the state by [Harness.OpenPeer]. Cases for an absent one are skipped, and the reason
// is shown by go test -v.
//
// # What it cannot ask
//
// A crash is not simulated: Reopen closes the store before it opens it again.
// The cost of clauses 5 and 7 and of a page is measured by [Benchmark], and not
// asserted. That methods return soon after their ctx ends is asked only of one that
// ended before the call. Concurrent histories are checked for changes that are seen
// in part, read late or lost, not for linearizability as a whole.
//
// # Adopting it
//
// Write the store until Run passes under go test -race. While it does not, go test -run
// 'TestStore/06' runs the cases of clause 6 alone. [Cases] are for those who want the
// cases without a [testing.T].
package storetest
