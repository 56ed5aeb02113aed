package outbox

import (
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestSeenWhileUnderWay: a notification whose attempt ends while it's being written as seen
// stays in memory until its outcome is written, and its retry isn't forgotten.
func TestSeenWhileUnderWay(t *testing.T) {
	now := time.Now()
	l := newLine("a", 4, EachEntity)
	l.known = func(hostport string) deliver.Receiver { return deliver.Receiver{HostPort: hostport, Limit: 4} }
	l.route("e", "example.com:443", now, now)
	l.addFresh([]row{{position: position{seq: 1}, entity: "e", id: "m"}}, page, false, now)
	m := l.next(now)
	seen := l.late(now.Add(keepUnseen))
	if m == nil || len(seen) != 1 {
		t.Fatalf("%v was started, %v written as seen, want both", m, seen)
	}
	l.ended(m, true, now)
	l.written(seen, now)
	if !l.isKnown(1) {
		t.Error("it's forgotten before its outcome is written")
	}
	l.written([]outcome{{Seq: 1, State: stateWaiting, Attempts: 1, Delay: time.Second.Microseconds()}}, now)
	if at := l.nextTime(now); !at.Equal(now.Add(time.Second)) || l.isKnown(1) {
		t.Errorf("the retry is due at %v, want in a second", at)
	}
}
