package deliver_test

import (
	"math"
	"testing"
	"testing/quick"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

func TestStandardSchedule(t *testing.T) {
	standard := deliver.StandardSchedule()
	var total time.Duration
	for _, delay := range standard {
		total += delay
	}
	if want := 75*time.Hour + 35*time.Minute + 5*time.Second; len(standard) != 9 || total != want {
		t.Errorf("%d delays, %v in all; want 9 and %v", len(standard), total, want)
	}
	standard[0] = 0
	if deliver.StandardSchedule()[0] != 5*time.Second {
		t.Error("a caller can change the schedule of others")
	}
}

func TestNext(t *testing.T) {
	s := deliver.Schedule{10 * time.Second, 100 * time.Second, -time.Second}
	for _, tt := range []struct {
		attempt  int
		r        deliver.Result
		min, max time.Duration
		again    bool
	}{
		{attempt: 1, r: deliver.Result{Outcome: deliver.Delivered}},
		{attempt: 1, r: deliver.Result{Outcome: deliver.Undeliverable}},
		{1, deliver.Result{Outcome: deliver.Failed}, 8 * time.Second, 12 * time.Second, true},
		{2, deliver.Result{Outcome: deliver.Failed}, 80 * time.Second, 120 * time.Second, true},
		{3, deliver.Result{Outcome: deliver.Failed}, 0, 0, true},
		{attempt: 4, r: deliver.Result{Outcome: deliver.Failed}},
		{attempt: 4, r: deliver.Result{Outcome: deliver.Failed, Wait: time.Hour}},
		{attempt: math.MaxInt, r: deliver.Result{Outcome: deliver.Failed}},
		{0, deliver.Result{Outcome: deliver.Failed}, 8 * time.Second, 12 * time.Second, true},
		{math.MinInt, deliver.Result{Outcome: deliver.Failed}, 8 * time.Second, 12 * time.Second, true},
		{1, deliver.Result{Outcome: deliver.Failed, Wait: time.Hour}, time.Hour, time.Hour, true},
		{1, deliver.Result{Outcome: deliver.Failed, Wait: time.Second}, 8 * time.Second, 12 * time.Second, true},
		{1, deliver.Result{Outcome: deliver.Deferred, Wait: time.Second}, time.Second, time.Second, true},
		{math.MaxInt, deliver.Result{Outcome: deliver.Deferred, Wait: time.Minute}, time.Minute, time.Minute, true},
		{1, deliver.Result{Outcome: deliver.Deferred, Wait: -1}, 0, 0, true},
		{1, deliver.Result{}, 8 * time.Second, 12 * time.Second, true},
		{1, deliver.Result{Outcome: math.MaxUint8}, 8 * time.Second, 12 * time.Second, true},
	} {
		delay, again := s.Next(tt.attempt, tt.r)
		if again != tt.again || delay < tt.min || delay > tt.max {
			t.Errorf("attempt %d, %v: %v, %v; want %v to %v, %v", tt.attempt, tt.r.Outcome, delay, again, tt.min, tt.max, tt.again)
		}
	}
	if delay, again := deliver.Schedule(nil).Next(1, deliver.Result{Outcome: deliver.Failed}); delay != 0 || again {
		t.Errorf("without a schedule: %v, %v", delay, again)
	}
}

// TestNextProperties: whatever the schedule and the result, a message waits for a time
// that is not negative, within a fifth of the schedule or for as long as the receiver
// asked, and comes back as often as the schedule has delays.
func TestNextProperties(t *testing.T) {
	property := func(s deliver.Schedule, attempt int, r deliver.Result) bool {
		r.Err = nil
		delay, again := s.Next(attempt, r)
		if delay < 0 || !again && delay != 0 {
			return false
		}
		switch r.Outcome {
		case deliver.Delivered, deliver.Undeliverable:
			return !again
		case deliver.Deferred:
			return again && delay == max(0, r.Wait)
		}
		attempt = max(1, attempt)
		if attempt > len(s) {
			return !again
		}
		planned := float64(max(0, s[attempt-1]))
		least, most := min(planned*0.79, math.MaxInt64), planned*1.21
		return again && delay >= r.Wait && (delay == r.Wait || float64(delay) >= least && float64(delay) <= most)
	}
	for _, attempts := range []int{1, 5, 50} { // lengths of schedules up to 50 meet attempts within them
		check := func(s deliver.Schedule, attempt uint8, outcome uint8, wait time.Duration) bool {
			r := deliver.Result{Outcome: deliver.Outcome(outcome % 6), Wait: wait}
			return property(s, int(attempt)%attempts, r)
		}
		if err := quick.Check(check, &quick.Config{MaxCount: 2000}); err != nil {
			t.Error(err)
		}
	}
}

// TestNextSpreads: messages that failed together do not come back together.
func TestNextSpreads(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 100 {
		delay, _ := deliver.StandardSchedule().Next(1, deliver.Result{Outcome: deliver.Failed})
		seen[delay] = true
	}
	if len(seen) < 50 {
		t.Errorf("100 messages have %d different delays", len(seen))
	}
}
