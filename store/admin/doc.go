// Package admin is for operators. It works with any [webhookcfg.Store] that can list its
// webhooks, like the stores of this module.
//
//   - [Clients] and [Webhooks] list who has configured what.
//   - [Copy] moves everything to another store, and [Verify] compares the two. A copy to a
//     file is an export, and a copy from one is an import.
//   - [Audit] and [AuditAll] find the webhooks that a policy refuses.
//   - [Erase] removes a client. Call it when you delete one.
//
// The program examples/admin has all of this as commands, for the stores of this module. To
// use it with your own store, add the store to schemes in its file address.go.
//
// The functions look for [webhookcfg.Lister], [ClientLister] and [Eraser] among the methods
// of the store that you pass. If you wrap a store, pass those methods through.
package admin
