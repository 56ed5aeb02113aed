// Package storetest tests your own [webhookcfg.Store]. Put this into a test of its package:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Harness{Open: func(testing.TB) webhookcfg.Store { return mystore.New() }})
//	}
//
// Your store is done when [Run] passes, and you should run it with go test -race too. While you
// write the store, you can run the cases of a single clause, here of clause 6:
//
//	go test -run 'TestStore/06'
//
// A failure shows the changes that were made, the result, and the case's rule. If many cases
// fail, start with the short ones:
//
//	go test -run 'TestStore/(0[4-9]|1[0-3])'
//
// See the examples of [Run], and [Cases] if you want to run the cases without a [testing.T].
//
// # What a store needs
//
// To meet clauses 5 and 7, you can give each client a generation number and keep its overrides
// under that number. A change of all then only writes the base and a new number, and you can
// delete the old overrides later. Package [example.com/go-webhookcfg/webhookcfg/portal] also
// needs a [webhookcfg.Lister], and package admin an [admin.ClientLister], too.
//
// # Covered rules
//
// Every clause in the documentation of [webhookcfg.Store] has a subtest that's named by its
// number. There are more for the rules of the optional interfaces: [webhookcfg.Lister],
// [admin.ClientLister], [admin.Eraser], [cache.Feed], [cache.Versioner] and [cache.Notifier].
// At the end, the suite compares random histories with a trivial model.
//
// You don't declare what your store can do. The suite finds optional interfaces by itself. To be
// sure that it finds yours, declare them:
//
//	var _ webhookcfg.Lister = (*Store)(nil)
//
// If your store is durable, set [Harness.Reopen] and [Harness.Crash]. If several processes can
// share it, set [Harness.OpenPeer]. The suite skips the rest, and go test -v shows why.
//
// With [Harness.OpenPeer], many cases run a second time with two handles on one state. The
// handles take turns making changes, and the cases read through both. So a handle can't rely on
// its memory, because another one may have changed the state.
//
// The cases go beyond limits that real stores have:
//
//   - 1,100 overrides of one client, 2 MB of URLs, 4,200 clients that change, 300 changes of
//     all entities, 300 versions.
//   - Several changes at one time, a microsecond apart, and back in time.
//   - Two listings at a time, and two callers of [cache.Notifier.Notify].
//   - Names with 300 bytes, of clients also with 1,024.
//   - Names that a store could confuse: they differ in case, in accents or in what's invisible,
//     one is the other's escape, they have the same short hash, or they match as a pattern.
//   - Names that can mean something to a store, such as "default", ".." or "acme.tmp".
//   - URLs that differ only in case, in escapes, or after 2,047 bytes.
//
// Your store must keep every name that's UTF-8 without control characters. The suite tries
// others too, such as a zero byte, unless your store refuses them with an error that wraps
// [webhookcfg.ErrInvalidArgument].
//
// # Outside the suite
//
//   - [Harness.Crash] stands for a process that's killed between two calls. The suite doesn't
//     kill it during a call, or simulate a power failure.
//   - The cost of clauses 5 and 7, and of a page, isn't checked. [Benchmark] measures it.
//   - Methods must return soon after ctx ends. The suite checks that only if ctx ended before
//     the call.
//   - The suite finds partial, stale and lost changes, and concurrent changes that no order
//     explains. It doesn't check linearizability as a whole, and can miss rare races.
//   - If you test against a fake of your database in the same process, let each of its calls
//     take 100 microseconds. Otherwise few calls overlap, and races stay hidden.
//   - The suite can't make your database fail. Test that a failed write gives an error from
//     [webhookcfg.Store.Apply], and a failed read one from [webhookcfg.Store.Resolve].
//
// # How long it takes
//
// A store with all interfaces and capabilities gets up to 75,000 calls, and a store with only
// the two methods of [webhookcfg.Store] gets 20,000. At 1 ms a call, that takes 40 and 10
// seconds, because many calls are concurrent. A faster store gets more calls. If a call takes 10
// ms or more, set -timeout: the suite may need more than the 10 minutes that go test allows.
// With go test -short, it makes half of the calls. It has a fifth of the overrides, clients and
// histories, and fewer names.
package storetest
