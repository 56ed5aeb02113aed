package egress

import (
	"context"
	"testing"
)

// TestFinishedFlightIsNotJoined: who comes after the result gets one of their own,
// also while others have not gone yet.
func TestFinishedFlightIsNotJoined(t *testing.T) {
	var f flights
	work := func(context.Context) error { return nil }
	first := f.join(t.Context(), "key", work)
	<-first.done
	second := f.join(t.Context(), "key", work)
	<-second.done
	if first == second {
		t.Error("a result was handed out later")
	}
	f.leave("key", first)
	f.leave("key", second)
	if n := len(f.byKey); n != 0 {
		t.Errorf("%d flights are kept", n)
	}
}

// TestAbandonedFlightEndsAlone: its end must not hide the one that came after it.
func TestAbandonedFlightEndsAlone(t *testing.T) {
	var f flights
	release := make(chan struct{})
	slow := func(context.Context) error { <-release; return nil }
	abandoned := f.join(t.Context(), "key", slow)
	f.leave("key", abandoned)

	forever := make(chan struct{})
	defer close(forever)
	current := f.join(t.Context(), "key", func(context.Context) error { <-forever; return nil })
	close(release)
	<-abandoned.done
	if joined := f.join(t.Context(), "key", slow); joined != current {
		t.Error("the flight under way was not joined")
	}
}
