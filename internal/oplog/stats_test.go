package oplog_test

import (
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/oplog/faultfs"
)

// TestStats: figures follow each change and compaction, and the file's figures also survive
// reopening.
func TestStats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New()
		l := openLog(t, fs, newModel())
		if s := l.Stats(); s.Changes != 0 || s.LastBatch != 0 || s.Bytes != s.LiveBytes || s.Bytes == 0 {
			t.Errorf("of an empty log: %+v", s)
		}
		slowly(fs, 20*time.Millisecond)
		appendAll(t, l, 100) // ten entities
		before := l.Stats()
		if before.Changes != 100 || before.LastBatch != 1 || before.LastWrite != 20*time.Millisecond || before.Compactions != 0 {
			t.Errorf("after 100 changes: %+v", before)
		}
		if ratio := float64(before.Bytes) / float64(before.LiveBytes); ratio < 5 || ratio > 10 {
			t.Errorf("after 100 changes: ratio %v in %+v", ratio, before)
		}
		if err := l.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		after := l.Stats()
		if after.Changes != 100 || after.Compactions != 1 || after.Bytes*5 > before.Bytes || after.LiveBytes > after.Bytes+100 || after.Bytes > after.LiveBytes+100 {
			t.Errorf("after a compaction: %+v", after)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		again := openLog(t, fs, newModel()).Stats()
		if again.Bytes != after.Bytes || again.Changes != 0 {
			t.Errorf("opened again: %+v, want %d bytes", again, after.Bytes)
		}
	})
}
