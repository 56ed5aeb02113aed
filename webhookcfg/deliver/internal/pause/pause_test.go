package pause_test

import (
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
)

// TestFailures: the fifth failure in a row starts a pause of five seconds, each further one doubles
// it up to the longest, and a success ends all of it.
func TestFailures(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var s pause.State
	for range 4 {
		s.Fail(now, now, time.Minute)
	}
	if s.IsFailing() || s.End().After(now) {
		t.Fatalf("pauses after four failures: %+v", s)
	}
	s.Fail(now, now, time.Minute)
	for _, want := range []time.Duration{5, 10, 20, 40, 60, 60} {
		if got := s.End().Sub(now); got != want*time.Second || !s.IsFailing() {
			t.Fatalf("pauses for %v, want %v s", got, int(want))
		}
		early := now
		now = s.End()
		s.Fail(early, early, time.Minute) // an attempt from before the pause
		if s.End() != now {
			t.Fatalf("an attempt from before the pause prolongs it to %v", s.End().Sub(now))
		}
		s.Fail(now, now, time.Minute)
	}
	if s.Succeed(); s.IsFailing() || s.IsUnwell(now) {
		t.Errorf("knows after a success: %+v", s)
	}
}

// TestAsk: the longest pause that was asked for counts, and a success doesn't end it.
func TestAsk(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var s pause.State
	s.Ask(now.Add(time.Minute))
	s.Ask(now.Add(time.Second))
	s.Succeed()
	if got := s.End().Sub(now); got != time.Minute {
		t.Errorf("pauses for %v, want a minute", got)
	}
}

// TestTrial: an attempt is allowed at once, at most once a minute, and what's known stays until it
// succeeds.
func TestTrial(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var s pause.State
	if s.Trial(now); s.OnTrial {
		t.Fatal("on trial without a pause")
	}
	for range 8 {
		s.Fail(now, now, time.Hour)
		now = s.End()
	}
	s.Ask(now.Add(time.Hour))
	known := s
	s.Trial(now)
	if s.End().After(now) || s.Failures != known.Failures || s.Length != known.Length || !s.IsFailing() {
		t.Fatalf("knows %+v on trial, and knew %+v", s, known)
	}
	s.Fail(now, now, time.Hour)
	if s.Length != 2*known.Length || s.Failures != known.Failures+1 {
		t.Fatalf("knows %+v after a failure on trial, and knew %+v", s, known)
	}
	s.Trial(now.Add(20 * time.Second))
	if got := s.End().Sub(now); got != time.Minute {
		t.Errorf("the next trial is after %v, want a minute", got)
	}
	if s.Succeed(); s.IsFailing() {
		t.Errorf("still one at a time after a success: %+v", s)
	}
}

// TestTrialOfAPauseThatWasAskedFor: it makes one attempt, although nothing has failed before.
func TestTrialOfAPauseThatWasAskedFor(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	var s pause.State
	s.Ask(now.Add(time.Hour))
	if s.Trial(now); !s.IsFailing() || s.End().After(now) {
		t.Errorf("more than one attempt at a time, or none: %+v", s)
	}
}
