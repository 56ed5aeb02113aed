// Package cache provides a sender's local copy of a [webhookcfg.Store], with bounded
// staleness.
//
// [Cache] is for stores that are slow, or reached over a network. It returns an entry
// from memory only if a poll of the store that vouches for it, or the read of the entry
// itself, started less than [Options.MaxStale] ago. So polls that fail, hang or
// arrive late cost reads of the store, never staleness. Otherwise the cache reads
// through, with at most [Options.MaxReads] reads at a time.
//
// The package also defines the optional interfaces of a store that only the cache uses:
//
//   - [Feed]: which clients changed since the last poll.
//   - [Versioner]: whether a client changed, for stores without a feed.
//   - [Notifier]: when to poll early.
//
// # What it holds
//
// If your store is a [webhookcfg.Lister], the cache holds a client's base and overrides
// together, as long as there are at most 256 overrides. One read then serves all entities
// of the client, also those that you have never sent for.
//
// The entities of a larger client are read and held one by one. So are those of a client
// that changed a moment ago, until as many were read as a page would cost, which is one
// for every 32 overrides. A busy client therefore doesn't read a page for each change.
//
// A client without overrides takes about 800 bytes, and each override about 350.
// [Options.MaxBytes] bounds the sum. [Cache.Warm] reads clients before you start to send.
//
// # What it costs
//
// Each process has a copy of its own. For one process, that is:
//
//   - Connections: MaxReads, and one for polls. Leave one more for changes if the process
//     also serves the handler. With the default of 8 reads, ten processes take 90 of the
//     100 connections that PostgreSQL allows by default. With MaxReads 1, 45 processes do:
//     one read at a time is enough once the copy is warm.
//   - Polls of a Feed (PostgreSQL, SQLite, etcd): one query every PollEvery, for any number
//     of clients. By default that is two a second.
//   - Polls of a Versioner (MySQL, MariaDB): one query every PollEvery for each 256 clients
//     that are held. A round of them must fit into MaxStale. If a query takes 8 ms, a MaxStale
//     of 2 seconds ends at 2 s / 8 ms * 256 = 64,000 clients. Beyond that, entries expire
//     between polls and are read again. Raise MaxStale, or lower MaxBytes so that fewer
//     clients are held.
//   - Reads: one for each client to warm, and later one for each change of a client that you
//     send for. Fifty processes read at most 500 times a second if 10 clients change.
package cache
