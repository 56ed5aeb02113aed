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
	every, start, end := 10*time.Second, "", "\n"
	if isTerminal(out) {
		every, start, end = time.Second/2, "\r", "\x1b[K" // clear the rest of the line
		defer fmt.Fprintln(out)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	last, at := s.metrics.delivered.Load(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		queue, err := s.engine.counts(ctx)
		if err != nil {
			continue // the queue logs what is wrong with the database
		}
		delivered, now := s.metrics.delivered.Load(), time.Now()
		rate := float64(delivered-last) / now.Sub(at).Seconds()
		last, at = delivered, now
		fmt.Fprintf(out, "%swaiting %d, under way %d, delivered %d (%.0f/s), failed %d, given up %d%s",
			start, queue.Waiting, queue.UnderWay, delivered, rate, s.metrics.failed.Load(), queue.GivenUp, end)
	}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
