package cache

import (
	"sync/atomic"
	"time"
)

// Stats are figures about a [Cache] since New.
type Stats struct {
	// Hits and Misses are the calls of Resolve that did and did not find an entry.
	Hits, Misses uint64
	// Reads is the number of reads of the store. FailedReads of them returned an error.
	Reads, FailedReads uint64
	// Polls is the number of polls. FailedPolls of them returned an error.
	Polls, FailedPolls uint64
	// LastError is the error of the latest read or poll that failed; nil if none did.
	LastError error
	// Age is the time since the last successful poll started; -1 before the first. While
	// it exceeds MaxStale, an entry is valid only for MaxStale after it was read.
	Age time.Duration
	// MaxStale is [Options.MaxStale], or its default, to compare Age with.
	MaxStale time.Duration
	// Entries is the number of entries: one for each client and, for clients that are not held
	// whole, one for each entity.
	Entries int
	// Bytes is about how much memory the entries take.
	Bytes int
}

// figures are counted where something happens.
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
