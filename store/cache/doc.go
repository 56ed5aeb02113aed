// Package cache provides a sender's local copy of a [webhookcfg.Store], with bounded
// staleness.
//
// [Cache] is for stores that are slow, or reached over a network. It returns an entry
// from memory only if a poll of the store that vouches for it, or the read of the entry
// itself, started less than [Options.MaxStale] ago. Therefore polls that fail, hang or
// arrive late cost reads of the store, never staleness. Otherwise the cache reads
// through, with at most [Options.MaxReads] reads at a time.
//
// The package also defines the optional interfaces of a store that only the cache uses:
//
//   - [Feed]: which clients changed since the last poll.
//   - [Versioner]: whether a client changed, for stores without a feed.
//   - [Notifier]: when to poll early.
package cache
