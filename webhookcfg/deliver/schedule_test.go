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
	done, setAside := deliver.Decision{Action: deliver.Done}, deliver.Decision{Action: deliver.SetAside}
	retry := func(attempt int, delay time.Duration) deliver.Decision {
		return deliver.Decision{Action: deliver.Retry, Delay: delay, Attempt: attempt}
	}
	undeliverable := func(reason deliver.Reason) deliver.Result {
		return deliver.Result{Outcome: deliver.Undeliverable, Reason: reason}
	}
	for _, tt := range []struct {
		attempt int
		r       deliver.Result
		want    deliver.Decision
		spread  time.Duration // of the delay, in both directions
	}{
		{1, deliver.Result{Outcome: deliver.Delivered}, done, 0},
		{1, undeliverable(deliver.ReasonNoWebhook), done, 0},
		{1, undeliverable(deliver.ReasonOff), done, 0},
		{1, undeliverable(deliver.ReasonStopped), done, 0},
		{1, undeliverable(deliver.ReasonGone), done, 0},
		{1, undeliverable(deliver.ReasonPolicy), setAside, 0},
		{1, undeliverable(deliver.ReasonMessage), setAside, 0},
		{1, undeliverable(deliver.ReasonStatus), setAside, 0},
		{1, undeliverable("another"), setAside, 0},
		{1, deliver.Result{Outcome: deliver.Failed}, retry(2, 10*time.Second), 2 * time.Second},
		{2, deliver.Result{Outcome: deliver.Failed}, retry(3, 100*time.Second), 20 * time.Second},
		{3, deliver.Result{Outcome: deliver.Failed}, retry(4, 0), 0},
		{4, deliver.Result{Outcome: deliver.Failed}, setAside, 0},
		{4, deliver.Result{Outcome: deliver.Failed, Wait: time.Hour}, setAside, 0},
		{math.MaxInt, deliver.Result{Outcome: deliver.Failed}, setAside, 0},
		{0, deliver.Result{Outcome: deliver.Failed}, retry(2, 10*time.Second), 2 * time.Second},
		{math.MinInt, deliver.Result{Outcome: deliver.Failed}, retry(2, 10*time.Second), 2 * time.Second},
		{1, deliver.Result{Outcome: deliver.Failed, Wait: time.Hour}, retry(2, time.Hour), 0},
		{1, deliver.Result{Outcome: deliver.Failed, Wait: time.Second}, retry(2, 10*time.Second), 2 * time.Second},
		{1, deliver.Result{Outcome: deliver.Deferred, Wait: time.Second}, retry(1, time.Second), 0},
		{0, deliver.Result{Outcome: deliver.Deferred, Wait: time.Second}, retry(1, time.Second), 0},
		{math.MaxInt, deliver.Result{Outcome: deliver.Deferred, Wait: time.Minute}, retry(math.MaxInt, time.Minute), 0},
		{1, deliver.Result{Outcome: deliver.Deferred, Wait: -1}, retry(1, 0), 0},
		{1, deliver.Result{}, retry(2, 10*time.Second), 2 * time.Second},
		{1, deliver.Result{Outcome: math.MaxUint8}, retry(2, 10*time.Second), 2 * time.Second},
	} {
		got := s.Next(tt.attempt, tt.r)
		off := (got.Delay - tt.want.Delay).Abs()
		if got.Delay = tt.want.Delay; got != tt.want || off > tt.spread {
			t.Errorf("attempt %d, %v %s: %+v, %v off; want %+v", tt.attempt, tt.r.Outcome, tt.r.Reason, got, off, tt.want)
		}
	}
	if got := deliver.Schedule(nil).Next(1, deliver.Result{Outcome: deliver.Failed}); got != setAside {
		t.Errorf("without a schedule: %+v", got)
	}
}

// TestNextProperties: for any schedule and result, a message waits for a time that isn't
// negative, within a fifth of the schedule or for as long as the receiver asked, and comes
// back as often as the schedule has delays.
func TestNextProperties(t *testing.T) {
	property := func(s deliver.Schedule, attempt int, r deliver.Result) bool {
		got := s.Next(attempt, r)
		attempt = max(1, attempt)
		switch {
		case r.Outcome == deliver.Delivered:
			return got == deliver.Decision{Action: deliver.Done}
		case r.Outcome == deliver.Deferred:
			return got == deliver.Decision{Action: deliver.Retry, Delay: max(0, r.Wait), Attempt: attempt}
		case r.Outcome == deliver.Undeliverable, attempt > len(s):
			return got == deliver.Decision{Action: deliver.SetAside}
		}
		planned := float64(max(0, s[attempt-1]))
		least, most := min(planned*0.79, math.MaxInt64), planned*1.21
		delay := float64(got.Delay)
		return got.Action == deliver.Retry && got.Attempt == attempt+1 && got.Delay >= max(0, r.Wait) &&
			(got.Delay == r.Wait || delay >= least && delay <= most)
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

func TestAction(t *testing.T) {
	for action, want := range map[deliver.Action]string{
		deliver.Done: "done", deliver.Retry: "retry", deliver.SetAside: "set aside",
		0: "Action(0)", math.MaxUint8: "Action(255)",
	} {
		if got := action.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestNextSpreads: messages that failed together do not come back together.
func TestNextSpreads(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 100 {
		seen[deliver.StandardSchedule().Next(1, deliver.Result{Outcome: deliver.Failed}).Delay] = true
	}
	if len(seen) < 50 {
		t.Errorf("100 messages have %d different delays", len(seen))
	}
}
