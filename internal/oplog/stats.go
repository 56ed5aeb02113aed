package oplog

import "time"

// Stats tell you how an open log is doing.
type Stats struct {
	// Bytes is how long the records in the file are, and LiveBytes estimates how long they
	// would be after a compaction.
	Bytes, LiveBytes int64
	// Changes counts the changes since the log was opened, and Compactions how often its file
	// was rewritten.
	Changes, Compactions uint64
	// LastBatch is how many changes the last batch made, and LastWrite how long its write and
	// sync took. Both are zero before the first batch.
	LastBatch int
	LastWrite time.Duration
}

// Stats returns the present figures. It doesn't wait for the disk.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// measure updates the figures. Call it from the commit loop or from Open.
func (l *Log) measure(update func(s *Stats)) {
	live := l.liveBytes()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Bytes, l.stats.LiveBytes = l.file.end, live
	update(&l.stats)
}
