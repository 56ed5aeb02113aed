// Package admin is for the operators of a service. It works on any [webhookcfg.Store] that lists
// what it has, as the stores of this module do.
//
//   - [Clients] and [Webhooks] say who has configured what.
//   - [Copy] moves everything to another store, and [Verify] compares the two. A copy to a
//     file is an export, and a copy from one an import.
//   - [Audit] and [AuditAll] find the webhooks that a policy refuses.
//   - [Erase] removes a client.
//
// The functions find [webhookcfg.Lister], [ClientLister] and [Eraser] among the methods of the
// store that you pass. If you wrap a store, pass those methods through.
package admin
