// Package linearizable tests that a store is linearizable, as [webhookcfg.Store] demands. It
// runs short random histories, with many goroutines and several handles, and has porcupine
// check each of them.
//
// [Check] fails your test if a history isn't linearizable. [MustFail] fails it if a store
// that you broke on purpose isn't caught. Without it, a pass would mean nothing.
//
// You can inject a fault into a [Workload]. Operations can fail then. A failed change may
// take effect or not, at any time after its call, even long after it returned. A failed read
// says nothing about the state.
package linearizable
