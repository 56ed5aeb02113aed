// Package gowebhookcfg is the front page of the module; it holds no code.
//
// The module is the configuration plane of a webhook system: the clients of a
// service say where their update notifications go, and the service asks which
// URL is in effect. A host imports [example.com/go-webhookcfg/webhookcfg] and,
// where it wires things together, one store and one verifier.
//
//   - webhookcfg: the vocabulary, the interfaces and the HTTP handler.
//   - webhookcfg/egress: which URLs and addresses may be called.
//   - store: the stores that come with the module.
//   - auth: verifiers of client credentials.
//   - examples: whole programs, each with a test.
//   - internal/table: the state machine in memory, free of locks and I/O.
//   - bench, integration, tools: modules of their own, never needed by a host.
//
// # The import rule
//
// Imports run one way: examples import everything public; store and auth import
// webhookcfg; store also imports internal/table; internal/table imports
// webhookcfg; webhookcfg imports egress; egress imports the standard library
// and golang.org/x/sync alone. A test holds the module to it.
package gowebhookcfg
