// Package gowebhookcfg is the front page of the module; it holds no code.
//
// The module is the configuration plane of a webhook system: the clients of a
// service say where their update notifications go, and the service asks which
// URL is in effect. A host imports [example.com/go-webhookcfg/webhookcfg] and,
// where it wires things together, one store and one verifier.
//
//   - webhookcfg: the vocabulary, the interfaces and the HTTP handler.
//   - webhookcfg/egress: which URLs and addresses may be called.
//   - store: the stores that come with the module, in memory and in a file.
//   - store/cache: a sender's local copy of any store, and the optional interfaces
//     that keep it fresh.
//   - store/sqlstore: the store in an SQL database, without a driver.
//   - store/etcdstore: the store in etcd; a module of its own.
//   - store/storetest: the conformance suite for anybody's store.
//   - auth: verifiers of client credentials.
//   - auth/authtest: the conformance suite for anybody's verifier.
//   - examples: whole programs, each with a test.
//   - internal/lru: a map of bounded size.
//   - internal/ratelimit: a rate limiter per key with bounded memory.
//   - internal/singleflight: shared work for concurrent calls with the same key.
//   - internal/redact: secrets kept out of errors and texts.
//   - internal/strictjson: a JSON object of strings, read in one way only.
//   - internal/table: the state machine in memory, free of locks and I/O.
//   - internal/oplog: the append-only log behind the file store.
//   - internal/oplog/faultfs: the log's file system for tests, which fails and forgets.
//   - internal/repotest: tests of the repository itself.
//   - examples/cluster, examples/mounts, internal/integration, internal/tools: modules
//     of their own, never needed by a host.
//
// # The import rule
//
// Imports run one way. examples import everything public. webhookcfg imports
// internal/redact and internal/strictjson. store imports
// webhookcfg, store/cache, internal/table and internal/oplog; the latter two import
// webhookcfg; internal/oplog/faultfs imports internal/oplog. store/cache imports
// webhookcfg. store/sqlstore and store/etcdstore import
// webhookcfg, store/cache and internal/redact, and store/storetest the former two. auth
// and authtest import webhookcfg. Whatever imports webhookcfg may import egress too, which
// imports internal/ratelimit and internal/singleflight; internal/ratelimit imports
// internal/lru. golang.org/x/sync is the one dependency beyond the standard library. A
// test holds the module to it.
package gowebhookcfg
