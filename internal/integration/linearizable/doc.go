// Package linearizable plays short random histories on a store, many goroutines at
// once and through several handles, and has each checked for an order of its
// operations that explains every answer: clause 14 of [webhookcfg.Store].
//
// [Check] demands such an order. [MustFail] demands that a store which is known to
// be broken is found out; without it, that a store passes would mean nothing.
//
// An operation may fail where the [Workload] disturbs the store. A change that
// failed may have happened or not, at any time after its call, even long after it
// returned; a read that failed says nothing.
package linearizable
