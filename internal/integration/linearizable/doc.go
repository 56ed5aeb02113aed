// Package linearizable runs short random histories against a store, with many
// concurrent goroutines and through several handles, and has porcupine check that each
// is linearizable, as [webhookcfg.Store] demands.
//
// [Check] fails the test for a history that is not. [MustFail] demands that a store
// that is known to be broken is caught; without it, a pass would mean nothing.
//
// Operations may fail where the [Workload] injects a fault. A change that failed may
// take effect or not, at any time after its call, even long after it returned; a read
// that failed constrains nothing.
package linearizable
