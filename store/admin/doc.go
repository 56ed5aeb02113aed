// Package admin is for operators. It works with any [webhookcfg.Store] that can list its
// webhooks, like the stores of this module.
//
//   - [Clients] and [Webhooks] list who has configured what.
//   - [Copy] moves everything to another store, and [Verify] compares the two. Look at what Copy
//     reports, too: it returns no error for what the other store refuses. A copy to a file is an
//     export, and a copy from one is an import.
//   - [Audit] and [AuditAll] find the webhooks that a policy refuses.
//   - [Erase] removes a client. Call it when you delete one.
//
// To bring in URLs that you have in a table of your own, make the table a store that you can
// only read, and copy it. The example of an import does that. A loop that sets each URL would
// do the same the first time, but each repetition would undo what clients have changed since.
//
// The program examples/admin has all of this as commands, for the stores of this module. To
// use it with your own store, add the store to schemes in its file address.go.
//
// # Move a running service
//
// The easiest move is with the service stopped: [Copy], [Verify], and start it with the new
// store. If you can't stop it, and only one process changes the store, use the store from the
// example of a migration. Two things are easy to get wrong:
//
//   - Requests that are in progress when you stop changes can still reach the old store after
//     your last copy. A flag in a middleware doesn't prevent that, but the store of the example
//     waits for them.
//   - Between the moment when the new store is complete and the switch, make the next start use
//     the new one. Otherwise a restart serves the old store, without the changes made since. The
//     example calls a function of yours at that moment.
//
// An erased client can leave records in the new store if you erase it during the move, so
// erase it again afterwards.
//
// # Wrap a store
//
// Handlers, caches and this package look for more methods than those of a
// [webhookcfg.Store]. If you wrap a store, pass these through:
//
//   - List of [webhookcfg.Lister], for handlers, caches and this package.
//   - ListClients of [ClientLister] and Erase of [Eraser], for this package.
//   - Changes of Feed, Versions of Versioner and Notify of Notifier, for caches. These
//     interfaces are in package [example.com/go-webhookcfg/store/cache]. The example of a
//     migration needs a Feed.
//
// If your wrapper switches between stores, it needs care with the methods for caches: the
// versions of two stores can be equal by chance, and a channel only has notifications of its own
// store. You can leave these methods out during a move. A cache then reads an entry again after
// [example.com/go-webhookcfg/store/cache.Options.MaxStale].
package admin
