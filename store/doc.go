// Package store has the stores that come with the module, and a local copy for any.
//
//   - [Memory] keeps the configuration for as long as the process lives.
//   - [File] keeps it in one file, durably: what was answered survives a crash.
//   - [Cached] answers a sender from memory, whatever store is behind it, and is never
//     further behind than a bound.
//
// A Cached is for stores that are asked over a network, or are slow. To know what
// changed it asks the store, if that is a [webhookcfg.Feed], as Memory and File are, or
// a [webhookcfg.Versioner].
//
// Package storetest has the conformance suite for stores of a host's own.
package store
