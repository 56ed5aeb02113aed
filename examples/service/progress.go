package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"
)

// report shows the progress of the deliveries until ctx ends: on a terminal as a line that
// is updated twice a second, elsewhere as a line every ten seconds.
func (s *service) report(ctx context.Context, out io.Writer) {
	every, format := 10*time.Second, "%s\n"
	if isTerminal(out) {
		every, format = time.Second/2, "\r%s\x1b[K" // and clears the rest of the line
		defer fmt.Fprintln(out)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last := progress{at: time.Now()}
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-ticker.C:
			queue, err := s.engine.counts(ctx)
			if err != nil {
				continue // the queue logs what is wrong with the database
			}
			p := progress{queue, s.metrics.delivered.Load(), s.metrics.failed.Load(), now}
			fmt.Fprintf(out, format, p.since(last))
			last = p
		}
	}
}

// progress is how far the deliveries are.
type progress struct {
	queue             counts
	delivered, failed int64 // by this process
	at                time.Time
}

// since describes the progress, with the rate since an earlier one.
func (p progress) since(last progress) string {
	rate := float64(p.delivered-last.delivered) / p.at.Sub(last.at).Seconds()
	return fmt.Sprintf("waiting %d, under way %d, delivered %d (%.0f/s), failed %d, given up %d",
		p.queue.Waiting, p.queue.UnderWay, p.delivered, rate, p.failed, p.queue.GivenUp)
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
