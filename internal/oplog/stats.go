package oplog

import "time"

// Stats are figures of an open log.
type Stats struct {
	// Bytes is the length of the records in the file, LiveBytes an estimate of their length
	// after a compaction.
	Bytes, LiveBytes int64
	// Changes counts those that were made since the log was opened, and Compactions how often
	// the file was written anew.
	Changes, Compactions uint64
	// LastBatch is how many changes the last batch made, and LastWrite how long its write
	// and sync took; zero if there was none.
	LastBatch int
	LastWrite time.Duration
}

// Stats returns the present figures. It does not wait for the disk.
func (l *Log) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stats
}

// measure updates the figures. It is for the commit loop, and for Open.
func (l *Log) measure(update func(s *Stats)) {
	live := l.liveBytes()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stats.Bytes, l.stats.LiveBytes = l.file.end, live
	update(&l.stats)
}
