// Package gowebhookcfg documents the module; it holds no code.
//
// The module is the configuration plane of a webhook system: the clients of a
// service configure where their update notifications are sent, and the service
// resolves which URL is in effect. A host imports
// [example.com/go-webhookcfg/webhookcfg] and, where it wires things together, one
// store and one verifier.
//
//   - webhookcfg: the vocabulary, the interfaces and the HTTP handler.
//   - webhookcfg/egress: which URLs and addresses may be called.
//   - webhookcfg/deliver: one attempt to deliver a notification.
//   - webhookcfg/portal: pages for people, who see and change webhooks in a browser.
//   - webhookcfg/mounttest: a check of a deployed mount, with the proxies in front of it.
//   - store: stores in memory and in a file.
//   - store/cache: a sender's copy of any store with bounded staleness, and the
//     optional interfaces that keep it fresh.
//   - store/admin: what operators do with any store: list, copy, compare, audit and erase, and
//     the optional interfaces for that.
//   - store/sqlstore: the store in an SQL database, without a driver.
//   - store/etcdstore: the store in etcd; a module of its own.
//   - store/storetest: the conformance suite for stores.
//   - auth: verifiers of client credentials.
//   - auth/authtest: the conformance suite for verifiers.
//   - examples: whole programs, each with a test. examples/admin, examples/mounts
//     and examples/service are modules of their own.
//   - internal/table: the state machine in memory, without locks and I/O.
//   - internal/oplog: the append-only log behind the file store, and oplog/faultfs,
//     the file system that its tests make fail.
//   - internal/strictjson, singleflight, checkup, rounds, keylock, ratelimit, lru,
//     redact: one mechanism each.
//   - internal/hostile: receivers that break the rules, for tests of what connects to them.
//   - internal/interrupt: contexts that end during a call, for the suites of stores and
//     verifiers.
//   - internal/pathtest: the table of request targets for tests of mounts, and a handler
//     that records their effects.
//   - internal/hooktest: small helpers that tests of several packages share.
//   - internal/repotest: tests of the repository itself.
//   - internal/integration, internal/tools: modules of their own with the tests
//     against real engines and third-party tools, the benchmarks, and the linters.
//
// # Use without a public home
//
// The module path has no public home yet. Clone the repository next to a service,
// and then do one of the following:
//
//   - Replace: add "require example.com/go-webhookcfg v0.0.0" and "replace
//     example.com/go-webhookcfg => ../go-webhookcfg" to the go.mod of the service, and
//     run go mod tidy.
//   - Workspace: run "go work init . ../go-webhookcfg" to build both as they are;
//     go mod tidy, and whatever runs with GOWORK=off, still needs the replace.
//   - Vendor: add the replace and run go mod vendor; the build then needs no clone.
//
// A module whose dependency has the replace must repeat it. store/etcdstore needs
// the same two lines of its own.
//
// # Import rule
//
// Imports run one way. Outside its tests, a package imports only these packages of the
// repository, and webhookcfg/egress wherever it may import webhookcfg. Examples import
// every public package. A test reads this list.
//
//	webhookcfg             → webhookcfg/egress, internal/redact, internal/strictjson
//	webhookcfg/egress      → internal/ratelimit, internal/redact, internal/singleflight
//	webhookcfg/deliver     → webhookcfg, internal/lru, internal/ratelimit, internal/redact
//	webhookcfg/portal      → webhookcfg, internal/redact
//	webhookcfg/mounttest   → webhookcfg/egress, internal/redact
//	store                  → webhookcfg, store/admin, store/cache, internal/checkup, internal/oplog, internal/table
//	store/admin            → webhookcfg
//	store/cache            → webhookcfg, store/admin, internal/lru, internal/singleflight
//	store/sqlstore         → webhookcfg, webhookcfg/deliver, store/admin, store/cache, internal/checkup, internal/keylock, internal/redact, internal/rounds
//	store/etcdstore        → webhookcfg, store/admin, store/cache, internal/checkup, internal/keylock, internal/redact, internal/rounds
//	store/storetest        → webhookcfg, store/admin, store/cache, internal/interrupt
//	auth                   → webhookcfg, internal/lru, internal/ratelimit, internal/redact, internal/singleflight
//	auth/authtest          → webhookcfg, internal/interrupt
//	internal/oplog         → webhookcfg
//	internal/oplog/faultfs → internal/oplog
//	internal/table         → webhookcfg
//	internal/hooktest      → webhookcfg, auth
//	internal/pathtest      → webhookcfg, webhookcfg/mounttest, store
//	internal/ratelimit     → internal/lru
//	internal/checkup       → internal/singleflight
//
// Beyond the standard library there is golang.org/x/sync, which internal/singleflight and
// store/admin import, and go-cmp in tests.
package gowebhookcfg
