// Package storetest is a conformance suite for implementations of [webhookcfg.Store].
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{Open: func(testing.TB) webhookcfg.Store { return mystore.New() }})
//	}
//
// # Requirements
//
// Every clause in the documentation of [webhookcfg.Store] has a case, and so a subtest, named
// by its number. So has every rule of [webhookcfg.Lister], [admin.ClientLister],
// [admin.Eraser], [cache.Feed], [cache.Versioner] and [cache.Notifier]. Random histories
// follow, which are compared with a trivial model. A failure reports the changes that were
// made, the result and the rule.
//
// The cases exceed limits that stores are known to have: 1,100 overrides of one client,
// 5,000 clients that changed, 300 changes of all and as many versions, changes at one
// time, a microsecond apart and back in time, two listings and two callers of Notify at a
// time. Names have 300 bytes, zero bytes and line feeds, match others in LIKE, in a glob or
// in a regular expression, or may have a meaning for the store, such as default. URLs differ
// only in case, in escapes or after 2,047 bytes.
//
// Optional capabilities are detected, not declared: optional interfaces by a type
// assertion, durability by [Harness.Reopen] and [Harness.Crash], and state that several
// processes share by [Harness.OpenPeer]. Cases for an absent one are skipped, and go test -v
// shows the reason.
//
// With OpenPeer, many cases run a second time with three handles on one state. Changes are
// made through one handle after the other, and webhooks and pages are read through all of
// them: so no handle may remember what another one has changed, nor finish a change of its
// own later.
//
// # Limits
//
// [Harness.Crash] simulates a killed process between two calls, not during one, and not a
// power failure. [Benchmark] measures the costs in clauses 5 and 7, and the cost of a page, but
// nothing asserts them. That methods return soon after ctx ends is checked only for a ctx that
// ended before the call. Concurrent histories are checked for partial, stale and lost changes,
// and concurrent changes for an order that explains their result; linearizability as a
// whole is not checked. A race that occurs rarely may go undetected in one run.
//
// # Cost
//
// The suite makes about 100,000 calls of a store that has every optional interface and
// capability, and 22,000 of one with the two methods of Store. If a call takes 1 ms, that
// lasts 75 and 15 seconds, because many calls are concurrent. With 10 ms and more it can
// exceed the 10 minutes that go test allows: set -timeout then. With go test -short, the suite
// has a fifth of the overrides, clients and histories, and makes half of the calls.
//
// # Use
//
// Write the store until Run passes under go test -race. Meanwhile, go test -run
// 'TestStore/06' runs only the cases of clause 6. [Cases] is for programs that run the
// cases without a [testing.T].
package storetest
