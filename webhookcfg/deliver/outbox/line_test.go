package outbox

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestSeenWhileUnderWay: a notification whose attempt ends while it's being written as seen
// stays in memory until its outcome is written, and its retry isn't forgotten.
func TestSeenWhileUnderWay(t *testing.T) {
	t.Parallel()
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

// TestParkedWhileMarked: a notification that leaves the memory while it's being written as seen
// is read again, whenever the writing ends.
func TestParkedWhileMarked(t *testing.T) {
	t.Parallel()
	const written, read = 1, 2
	for _, first := range []int{0, written, read} { // what ends first, if it's being read
		whileReading := first > 0
		now := time.Now()
		l := newLine("a", 4, EachEntity)
		l.known = func(hostport string) deliver.Receiver { return deliver.Receiver{HostPort: hostport, Limit: 4} }
		l.route("e", "example.com:443", now, now)
		l.addFresh([]row{{position: position{seq: 1}, entity: "e", id: "m"}}, page, false, now)
		seen := l.late(now.Add(keepUnseen))
		l.marking += len(seen)
		if whileReading {
			l.startRead()
		}
		r := l.receivers["example.com:443"]
		r.blocked = now.Add(time.Second)
		l.park(r)
		if whileReading {
			if first == written {
				l.written(seen, now)
			}
			l.addWaiting(position{}, nil, page, now) // from before that
			l.endRead()
			if first == read {
				l.written(seen, now)
			}
		}
		now = now.Add(2 * time.Second)
		l.unblock(now)
		rd, ok := l.nextRead(now)
		if ok && !whileReading {
			t.Fatalf("it reads %+v while the notification can't be found", rd)
		}
		if !whileReading {
			l.written(seen, now)
			rd, ok = l.nextRead(now)
		}
		if !ok || rd.fresh || rd.from.compare(position{seq: 1}) > 0 {
			t.Errorf("it doesn't read the notification again: %+v", rd)
		}
	}
}

// TestUnpausedWhileTakenIn: one of the fresh notifications that were read ends the pause of their
// receiver, since its webhook was set after the pause. Those before it keep their place.
func TestUnpausedWhileTakenIn(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := newLine("a", 4, EachEntity)
	l.known = func(hostport string) deliver.Receiver {
		return deliver.Receiver{HostPort: hostport, Limit: 4, PausedUntil: now.Add(time.Minute), Since: now.Add(-time.Hour)}
	}
	l.route("e", "example.com:443", now.Add(-time.Hour), now)
	l.route("set", "example.com:443", now, now)
	var rows []row
	for i, entity := range []string{"e", "set", "e"} {
		rows = append(rows, row{position: position{seq: int64(i + 1)}, entity: entity})
	}
	l.addFresh(rows, page, false, now)
	var started []int64
	for m := l.next(now); m != nil; m = l.next(now) {
		started = append(started, m.seq)
	}
	if !slices.Equal(started, []int64{1, 2}) {
		t.Errorf("%v start, want 1 and 2", started)
	}
}

// TestStartsWithinLimits: a line starts no more attempts at a time than its client may have, and
// of these no more of a receiver than that takes, however many are waiting.
func TestStartsWithinLimits(t *testing.T) {
	t.Parallel()
	const perReceiver = 2
	hosts := []string{"even.example:443", "odd.example:443"}
	for perClient, want := range map[int]int{3: 3, 8: perReceiver * len(hosts)} {
		now := time.Now()
		l := newLine("a", perClient, EachEntity)
		l.known = func(hostport string) deliver.Receiver {
			return deliver.Receiver{HostPort: hostport, Limit: perReceiver}
		}
		var rows []row
		for seq := range int64(12) {
			entity := strconv.FormatInt(seq, 10)
			l.route(entity, hosts[seq%2], now, now)
			rows = append(rows, row{position: position{seq: seq + 1}, entity: entity, id: "m" + entity})
		}
		l.addFresh(rows, page, false, now)
		var started []*message
		for m := l.next(now); m != nil; m = l.next(now) {
			started = append(started, m)
		}
		if len(started) != want || l.hasTurn(now) {
			t.Fatalf("a client that may have %d has %d, want %d; more have a turn: %t", perClient, len(started), want, l.hasTurn(now))
		}
		l.ended(started[0], false, now)
		if !l.hasTurn(now) || l.next(now) == nil || l.next(now) != nil {
			t.Errorf("a client that may have %d: after an end, it isn't just one more that starts", perClient)
		}
	}
}
