// Package storetest is a conformance suite for implementations of [webhookcfg.Store].
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{Open: func(testing.TB) webhookcfg.Store { return mystore.New() }})
//	}
//
// # Requirements
//
// There is a case, and so a subtest, for every clause in the documentation of
// [webhookcfg.Store], in their order and named by their number, and for every rule of
// [webhookcfg.Lister], [cache.Feed], [cache.Versioner] and [cache.Notifier]. Random
// histories follow, which are compared with a trivial model. A failure reports the
// changes that were made, the result and the rule.
//
// The cases exceed limits that stores are known to have: 1,100 overrides of one client,
// 5,000 clients that changed, 300 changes of all and as many versions, changes at one
// time, a microsecond apart and back in time, names of 300 bytes and with zero bytes and line feeds, two
// listings and two callers of Notify at a time.
//
// Optional capabilities are detected, not declared: optional interfaces by a type
// assertion, durability by [Harness.Reopen] and [Harness.Crash], and state that several processes share by
// [Harness.OpenPeer]. Cases for an absent one are skipped; go test -v shows the reason.
//
// With OpenPeer, many cases run a second time with three handles on one state. Changes are
// made through one handle after the other, and webhooks and pages are read through all of
// them: so no handle may remember what another one has changed, nor finish a change of its
// own later.
//
// # Limits
//
// [Harness.Crash] simulates a killed process between two calls, not during one, and not a
// power failure. The costs in
// clauses 5 and 7, and the cost of a page, are measured by [Benchmark], and not
// asserted. That methods return soon after ctx ends is checked only for a ctx that ended
// before the call. Concurrent histories are checked for partial, stale and lost changes,
// and concurrent changes for an order that explains their result; linearizability as a
// whole is not checked. A race that occurs rarely may go undetected in one run.
//
// The suite makes about 20,000 calls. Its time thus depends on the store: with 1 ms per
// call, about half a minute.
//
// # Use
//
// Write the store until Run passes under go test -race. Meanwhile, go test -run
// 'TestStore/06' runs only the cases of clause 6. [Cases] is for programs that run the
// cases without a [testing.T].
package storetest
