// Package cache keeps a sender's local copy of a [webhookcfg.Store].
//
// [Cache] answers a sender from memory, whatever store is behind it, and is never
// further behind than a bound. It is for stores that are asked over a network, or are
// slow. To know what changed it asks the store, if that is a [Feed] or a [Versioner].
package cache
