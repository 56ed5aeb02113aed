// Package pause says when a webhook or a host that fails is called again.
package pause

import "time"

const (
	tolerated = 4 // failures in a row; the next one starts a pause
	// trialEvery is how often a webhook that fails gets an attempt because it was set again.
	trialEvery = time.Minute
)

// First is how long the first pause is.
const First = 5 * time.Second

// State is what attempts say about when to make the next one. After five failures in a row there
// is none for five seconds, and then for twice as long after each further failure. The zero State
// is that of somebody who hasn't failed.
type State struct {
	// Failures is how many attempts in a row have failed.
	Failures int
	// Length is how long the last pause after failures was, and Until its end.
	Length time.Duration
	Until  time.Time
	// Asked is the end of the pause that the receiver asked for.
	Asked time.Time
	// Tried is when the last Trial was, and OnTrial says that its attempt hasn't ended.
	Tried   time.Time
	OnTrial bool
}

// End returns the end of the pause. It's zero, or in the past, if there's none.
func (s *State) End() time.Time {
	if s.Asked.After(s.Until) {
		return s.Asked
	}
	return s.Until
}

// IsFailing reports whether one attempt at a time is enough, until one succeeds.
func (s *State) IsFailing() bool { return s.Failures > tolerated || s.OnTrial }

// IsUnwell reports whether the last attempt failed, or there's a pause.
func (s *State) IsUnwell(now time.Time) bool { return s.Failures > 0 || s.End().After(now) }

// Succeed records a success. It ends the pause after failures, but not one that was asked for.
func (s *State) Succeed() { s.Failures, s.Length, s.Until, s.OnTrial = 0, 0, time.Time{}, false }

// Fail records the failure of an attempt that started at a time. A pause isn't longer than most.
func (s *State) Fail(start, now time.Time, most time.Duration) {
	s.Failures++
	s.OnTrial = false
	// An attempt from before the pause doesn't prolong it.
	if s.Failures > tolerated && !start.Before(s.Until) {
		s.Length = min(max(2*s.Length, First), most)
		s.Until = now.Add(s.Length)
	}
}

// Ask records that the receiver asked for a pause until a time.
func (s *State) Ask(until time.Time) {
	if until.After(s.Asked) {
		s.Asked = until
	}
}

// Trial allows an attempt before the pause is over, since the same webhook was set again: at once,
// or a minute after the last one. What's known stays, so if that attempt fails, too, the next
// pause is twice as long.
func (s *State) Trial(now time.Time) {
	if !s.End().After(now) {
		return
	}
	s.OnTrial = true
	end := now
	if next := s.Tried.Add(trialEvery); next.After(now) {
		end = next
	} else {
		s.Tried = now
	}
	if s.Until.After(end) {
		s.Until = end
	}
	if s.Asked.After(end) {
		s.Asked = end
	}
}
