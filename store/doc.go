// Package store has the stores that come with the module.
//
//   - [Memory] keeps the configuration for as long as the process lives.
//   - [File] keeps it in one file, durably: what was answered survives a crash.
//
// Package storetest has the conformance suite for stores of a host's own, package
// cache a sender's local copy of any store.
package store
