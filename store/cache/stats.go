package cache

import (
	"sync/atomic"
	"time"
)

// Stats are figures about a [Cache], counted since New. You can export them as metrics.
type Stats struct {
	// Hits and Misses count the calls of Resolve that found an entry, and those that didn't.
	Hits, Misses uint64
	// Reads counts the reads of the store, and FailedReads those that returned an error.
	Reads, FailedReads uint64
	// Polls counts the polls of the store, and FailedPolls those that returned an error.
	Polls, FailedPolls uint64
	// LastError is the error of the last read or poll that failed. It's nil if none did.
	LastError error
	// Age is the time since the last successful poll started, or -1 before the first. While
	// it's more than MaxStale, an entry is valid only for MaxStale after it was read.
	Age time.Duration
	// MaxStale is [Options.MaxStale] or its default. Compare Age with it.
	MaxStale time.Duration
	// Entries is the number of entries: one for each client and, if a client isn't held as a
	// whole, one for each of its entities that you sent for.
	Entries int
	// Bytes is about how much memory the entries take.
	Bytes int
}

// figures are counted where things happen.
type figures struct {
	hits, misses       atomic.Uint64
	reads, failedReads atomic.Uint64
	polls, failedPolls atomic.Uint64
	lastError          atomic.Pointer[error]
}

// fail counts a failure and keeps its error.
func (f *figures) fail(failed *atomic.Uint64, err error) {
	failed.Add(1)
	f.lastError.Store(&err)
}

// Stats returns the current figures.
func (c *Cache) Stats() Stats {
	f := &c.figures
	stats := Stats{
		Hits: f.hits.Load(), Misses: f.misses.Load(),
		Reads: f.reads.Load(), FailedReads: f.failedReads.Load(),
		Polls: f.polls.Load(), FailedPolls: f.failedPolls.Load(),
		Age: -1, MaxStale: c.maxStale,
	}
	if err := f.lastError.Load(); err != nil {
		stats.LastError = *err
	}
	if polled := instant(c.poller.last.Load()); polled > 0 {
		stats.Age = c.clock.now() - polled
	}
	stats.Entries, stats.Bytes = c.entries.size()
	return stats
}
