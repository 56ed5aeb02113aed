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
// If you change the module itself, you'll also meet these:
//
//   - internal/table: the state machine in memory, without locks or I/O.
//   - internal/dialect: SQL for the databases of sqlstore and outbox, and their prefixes.
//   - internal/oplog: the append-only log behind the file store, and oplog/faultfs, the file
//     system that its tests make fail.
//   - internal/strictjson, bodytimer, singleflight, healthcheck, rounds, keylock, ratelimit, lru,
//     redact: one mechanism each.
//   - internal/hostile: receivers that break the rules, to test everything that connects to
//     them.
//   - internal/interrupt: contexts that end during a call, for the suites of stores and
//     verifiers.
//   - internal/pathtest: request targets for tests of mounts, and a handler that records what
//     they do.
//   - internal/hooktest: small helpers that the tests of several packages share.
//   - internal/limits.md: everything that can grow, and what others notice at its bound.
//   - internal/repotest: tests of the repository itself.
//   - internal/release: the command that makes a release.
//   - internal/integration, internal/tools: modules of their own. They have the tests against
//     real engines and third-party tools, the benchmarks, and the linters.
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
//
// # Import rule
//
// Imports run one way. Outside of its tests, a package can only import the packages on its
// line here, and also webhookcfg/egress if webhookcfg is one of them. Examples can import
// every public package. A test compares this list with the code.
//
//	webhookcfg             → webhookcfg/egress, internal/bodytimer, internal/redact, internal/strictjson
//	webhookcfg/egress      → internal/lru, internal/ratelimit, internal/redact, internal/singleflight, internal/strictjson
//	webhookcfg/deliver     → webhookcfg, internal/lru, internal/ratelimit, internal/redact
//	webhookcfg/deliver/outbox → webhookcfg, webhookcfg/deliver, store/sqlstore, internal/dialect, internal/healthcheck, internal/redact
//	webhookcfg/deliver/delivertest → webhookcfg/deliver, webhookcfg/egress
//	webhookcfg/portal      → webhookcfg, internal/bodytimer, internal/redact
//	webhookcfg/mounttest   → webhookcfg/egress, internal/redact
//	store                  → webhookcfg, store/admin, store/cache, internal/healthcheck, internal/oplog, internal/table
//	store/admin            → webhookcfg
//	store/cache            → webhookcfg, store/admin, internal/lru, internal/redact, internal/singleflight
//	store/sealed           → webhookcfg, store/admin, store/cache
//	store/sqlstore         → webhookcfg, webhookcfg/deliver, store/admin, store/cache, internal/healthcheck, internal/dialect, internal/keylock, internal/redact, internal/rounds
//	store/etcdstore        → webhookcfg, store/admin, store/cache, internal/healthcheck, internal/keylock, internal/redact, internal/rounds
//	store/storetest        → webhookcfg, store/admin, store/cache, internal/interrupt
//	auth                   → webhookcfg, internal/lru, internal/ratelimit, internal/redact, internal/singleflight, internal/rounds
//	auth/authtest          → webhookcfg, internal/interrupt
//	internal/oplog         → webhookcfg
//	internal/oplog/faultfs → internal/oplog
//	internal/table         → webhookcfg
//	internal/hooktest      → webhookcfg, auth
//	internal/pathtest      → webhookcfg, webhookcfg/mounttest, store
//	internal/ratelimit     → internal/lru
//	internal/healthcheck   → internal/singleflight
//
// Beyond the standard library, the module needs only golang.org/x/sync (in
// internal/singleflight and store/admin), and go-cmp in tests.
package gowebhookcfg
