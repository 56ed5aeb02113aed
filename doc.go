// Package gowebhookcfg documents the module. It has no code.
//
// With this module, your clients set the URLs that your service sends its notifications to,
// and your service asks which URL is in effect. You import
// [example.com/go-webhookcfg/webhookcfg], one store and one verifier. Add the rest when you
// need it.
//
// Start here:
//
//   - [example.com/go-webhookcfg/webhookcfg]: the HTTP handler, the vocabulary and the
//     interfaces.
//   - [example.com/go-webhookcfg/store]: stores in memory and in a file.
//   - [example.com/go-webhookcfg/auth]: verifiers, which check how clients sign in, and the
//     middleware that finds their addresses behind proxies.
//   - examples: whole programs, each with a test.
//
// To keep webhooks in your database:
//
//   - [example.com/go-webhookcfg/store/sqlstore]: PostgreSQL, MySQL, MariaDB and SQLite. You
//     bring the driver.
//   - [example.com/go-webhookcfg/store/etcdstore]: etcd. It's a module of its own.
//   - [example.com/go-webhookcfg/store/sealed]: encrypts the URLs in any of them.
//
// To send notifications:
//
//   - [example.com/go-webhookcfg/webhookcfg/deliver]: makes one attempt to deliver a
//     notification.
//   - [example.com/go-webhookcfg/webhookcfg/deliver/outbox]: the queue. You enqueue in your own
//     database transactions.
//   - [example.com/go-webhookcfg/webhookcfg/egress]: says which URLs and addresses you can call.
//   - [example.com/go-webhookcfg/store/cache]: keeps a copy of any store in the sender's memory,
//     and bounds how stale it can be.
//
// For your clients and operators:
//
//   - [example.com/go-webhookcfg/webhookcfg/portal]: pages where people see and change webhooks
//     in a browser.
//   - [example.com/go-webhookcfg/webhookcfg/sent]: what clients see of notifications, on those
//     pages and in an API of yours, and how they send them again.
//   - [example.com/go-webhookcfg/webhookcfg/mounttest]: checks a deployed handler from outside,
//     through all your proxies.
//   - [example.com/go-webhookcfg/store/admin]: lists, copies, compares, audits and erases
//     webhooks, in any store.
//
// To test what you write yourself:
//
//   - [example.com/go-webhookcfg/store/storetest]: the conformance suite for stores.
//   - [example.com/go-webhookcfg/auth/authtest]: the conformance suite for verifiers.
//   - [example.com/go-webhookcfg/webhookcfg/deliver/delivertest]: a receiver of notifications
//     that fails as you tell it to.
//
// The programs examples/admin, examples/mounts and examples/service are modules of their own,
// too.
//
// # Use it before it has a public home
//
// The module path doesn't lead anywhere yet. Clone the repository next to your service, then
// pick one of these:
//
//   - Replace: add "require example.com/go-webhookcfg v0.0.0" and "replace
//     example.com/go-webhookcfg => ../go-webhookcfg" to your go.mod, and run go mod tidy.
//   - Workspace: run "go work init . ../go-webhookcfg" and build. You don't have to change
//     your go.mod, but go mod tidy, and anything that runs with GOWORK=off, still needs the
//     replace.
//   - Vendor: add the replace and run go mod vendor. After that, the build doesn't need the
//     clone.
//
// Go ignores the replace lines of your dependencies, so repeat them in each module that
// depends on yours. If you use store/etcdstore, it needs the same two lines with its own
// path.
package gowebhookcfg
