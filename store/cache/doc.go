// Package cache keeps a copy of a store in a sender's memory, so that you can resolve a
// webhook without a query.
//
//	local, err := cache.New(webhooks, nil)
//	defer local.Close()
//	hook, err := local.Resolve(ctx, client, entity)
//
// Use it if your store is slow, or if you reach it over a network. A result can be stale, but
// never by more than [Options.MaxStale], which is 2 seconds by default. If polls of the store
// fail, hang or come late, the cache reads the store more often to keep that bound. If you'd
// rather send to an older URL than not at all while the store is down, set
// [Options.StaleIfError].
//
// You should call [Cache.Warm] before you start to send, and put [Cache.Stats] into your
// metrics. If you also serve the handler in this process, give it [Cache.Store].
//
// # How the copy stays fresh
//
// The cache polls the store four times within [Options.MaxStale], and drops what changed. An
// entry is used as long as a poll that vouches for it, or the read of the entry itself, started
// less than MaxStale ago. Otherwise the cache reads the store, with at most [Options.MaxReads]
// reads at a time.
//
// The stores of this module can be polled. If you write your own, implement these optional
// interfaces:
//
//   - [Feed] says which clients changed since the last poll.
//   - [Versioner] says whether a client changed. It's for stores that can't be a Feed.
//   - [Notifier] says when to poll early.
//
// # Contents
//
// If your store is a [webhookcfg.Lister], the cache holds a client's base, the default webhook,
// and its overrides together, as long as there are at most 256 overrides. One read then serves
// all entities of the client, even those that you've never sent for.
//
// The entities of a larger client are read and held one by one. A client that has just
// changed also starts with such reads, one for every 32 overrides that it had. Only then is
// it read as a whole again, because reading a busy client as a whole after each of its
// changes would cost too much.
//
// # Costs
//
// Each process has its own copy, so each polls, and reads every client that it sends for: once
// when you warm it, and later once for each change. If 10 clients change in a second, 50 processes
// make at most 500 reads. [Options] says what polls cost ([Options.MaxStale]), how many
// connections a process takes ([Options.MaxReads]), and how much memory ([Options.MaxBytes]).
package cache
