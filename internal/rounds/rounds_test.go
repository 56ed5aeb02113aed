package rounds_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/rounds"
)

// TestRun: rounds follow each other at the interval, and one that takes too long is ended, until
// the context is. Not all start at the same time.
func TestRun(t *testing.T) {
	starts := make(map[time.Duration]bool)
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Hour)
			defer cancel()
			begin := time.Now()
			var started []time.Duration
			rounds.Run(ctx, time.Hour, func(ctx context.Context) {
				if started = append(started, time.Since(begin)); len(started) == 2 {
					<-ctx.Done() // takes the whole interval
				}
			})
			if first := started[0]; first >= time.Hour || time.Since(begin) != 10*time.Hour {
				t.Errorf("the first round was after %v, the end after %v", first, time.Since(begin))
			}
			for n, at := range started {
				want := started[0] + time.Duration(n)*time.Hour
				if n > 1 {
					want += time.Hour
				}
				if at != want {
					t.Errorf("round %d was after %v, want %v", n, at, want)
				}
			}
			if len(started) != 9 {
				t.Errorf("%d rounds", len(started))
			}
			starts[started[0].Truncate(time.Minute)] = true
		})
	}
	if len(starts) < 5 {
		t.Errorf("20 processes started in %d minutes of the hour", len(starts))
	}
}
