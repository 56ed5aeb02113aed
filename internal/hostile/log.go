package hostile

import (
	"log"
	"os"
	"sync/atomic"
	"testing"
)

// maxLine is how many bytes net/http can log about a request.
const maxLine = 1 << 10

// started counts the receivers that were started.
var started atomic.Int64

// BoundLog makes your test fail if the standard logger gets more than a line of 1 KiB for
// each receiver. Send one request to each receiver.
func BoundLog(tb testing.TB) {
	tb.Helper()
	before := started.Load()
	lines := &lineCounter{tb: tb}
	log.SetOutput(lines)
	tb.Cleanup(func() {
		log.SetOutput(os.Stderr)
		if requests := started.Load() - before; lines.n.Load() > requests {
			tb.Errorf("%d lines in the log for %d requests", lines.n.Load(), requests)
		}
	})
}

// lineCounter counts the lines that a [log.Logger] writes.
type lineCounter struct {
	tb testing.TB
	n  atomic.Int64
}

func (c *lineCounter) Write(line []byte) (int, error) {
	c.n.Add(1)
	if len(line) > maxLine {
		c.tb.Errorf("%d bytes in one line of the log: %.100q", len(line), line)
	}
	return len(line), nil
}
