package outbox

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestPace: lines that are behind start attempts in turn, fewer if the process is late, and
// none while outcomes can't be written.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		isClogged := true
		p := newPace(func() bool { return isClogged })
		var lines []*drain
		for range 20 {
			d := &drain{kick: make(chan struct{}, 1)}
			if lines = append(lines, d); p.take(d) {
				t.Error("a line may start although outcomes can't be written")
			}
		}
		if p.grant(time.Now()); len(p.waiting) != 20 {
			t.Errorf("%d lines wait, want 20", len(p.waiting))
		}
		isClogged = false
		time.Sleep(tick)
		if !p.grant(time.Now()) || !p.take(lines[0]) || p.take(lines[0]) || p.take(lines[19]) {
			t.Error("the first line may not start one attempt, or the last one may")
		}
		before := p.rate
		p.grant(time.Now().Add(-tick - 2*maxLate))
		if p.rate >= before {
			t.Errorf("the rate is %v although the process was late, and was %v before", p.rate, before)
		}
		for range 1000 {
			p.grant(time.Now())
		}
		if p.rate != maxRate {
			t.Errorf("the rate is %v, want %v", p.rate, maxRate)
		}
	})
}

// TestPaceOfOneLine: the line of a receiver with four slots that takes ten milliseconds never waits,
// even if the process is always late.
func TestPaceOfOneLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPace(func() bool { return false })
		p.rate = minRate
		d := &drain{kick: make(chan struct{}, 1)}
		for range 1000 {
			time.Sleep(10 * time.Millisecond)
			for range 4 {
				if !p.take(d) {
					t.Fatal("the line waits")
				}
			}
		}
	})
}

// backlogs enqueues for many clients with slow receivers.
func (w *world) backlogs(clients, each int) {
	for c := range clients {
		client := fmt.Sprint("c", c)
		w.set(client, "", w.host(c, &peer{takes: 200 * time.Millisecond}))
		for i := range each {
			w.db.enqueue(client, fmt.Sprint("e", i), fmt.Sprint("m", c, "-", i))
		}
	}
}

// TestSmallReadsOvertake: a small client's notification doesn't wait while backlogs are read,
// although each call of the database takes long.
func TestSmallReadsOvertake(t *testing.T) {
	// Not parallel: with the race detector, so many connections take 200 MB.
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.takes = 20 * time.Millisecond
		w.backlogs(sized(20, 100), sized(100, 300))
		w.set("new", "", w.host(5000, &peer{takes: time.Millisecond}))
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		time.Sleep(2 * time.Second)
		sent := map[string]time.Duration{"new": time.Since(w.start)}
		w.db.enqueue("new", "e", "new")
		p.box.Committed("new")
		time.Sleep(5 * time.Second)
		if took := w.since(sent); len(took) == 0 || took[0] > 100*time.Millisecond {
			t.Errorf("the new client's notification took %v, want 100 ms", took)
		}
	})
}

// TestWriterBoundsBacklogs: backlogs aren't sent faster than outcomes are written.
func TestWriterBoundsBacklogs(t *testing.T) {
	// Not parallel: with the race detector, so many connections take 200 MB.
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		clients := sized(30, 100)
		w.backlogs(clients, sized(150, 300))
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		time.Sleep(time.Second)
		w.db.mu.Lock()
		p.session.fail = func(call string) error {
			if call == "write" {
				return errCut
			}
			return nil
		}
		w.db.mu.Unlock()
		before := w.arrived()
		time.Sleep(30 * time.Second)
		// The first ones end up written down, and then those under way complete.
		if n, most := w.arrived()-before, 3*maxBatch+clients*4; n > most {
			t.Errorf("%d were sent while nothing was written, want %d", n, most)
		}
	})
}

// TestEnqueuedDuringReturn: what is enqueued while a line is being given back needn't wait for the next
// poll.
func TestEnqueuedDuringReturn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		time.Sleep(time.Second)
		p.box.mu.Lock()
		running := p.box.process
		p.box.mu.Unlock()
		sent := make(map[string]time.Duration)
		for i := range 10 {
			client, id := fmt.Sprint("c", i), fmt.Sprint("again", i)
			w.set(client, "", w.host(i, &peer{}))
			w.db.enqueue(client, "e", fmt.Sprint("m", i))
			p.box.Committed(client)
			time.Sleep(3 * time.Second)
			running.mu.Lock()
			d := running.lines[client]
			running.mu.Unlock()
			d.mu.Lock()
			d.giveBack(time.Hour)
			d.mu.Unlock()
			sent[id] = time.Since(w.start)
			w.db.enqueue(client, "e", id)
			p.box.Committed(client)
			time.Sleep(time.Second)
		}
		took := w.since(sent)
		if len(took) != 10 || took[9] > flushWait+10*time.Millisecond {
			t.Errorf("%d of 10 arrived, the last one after %v", len(took), took[len(took)-1])
		}
	})
}

// TestPollsLeaveTime: polls take a ninth of the time at most, also if they take long and always find
// something, since SQLite's other readers wait meanwhile.
func TestPollsLeaveTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.db.takes = 50 * time.Millisecond
		w.set("a", "", w.host(1, &peer{}))
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		for i := range 600 {
			w.db.enqueue("a", "e", fmt.Sprint("m", i))
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.db.counted()["poll"]; n > 60_000/50/9+1 {
			t.Errorf("%d polls in a minute, want %d", n, 60_000/50/9)
		}
	})
}

// TestMarksWait: what is only marked as seen waits for outcomes, and then overwrites none.
func TestMarksWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		p := newProcess(newOutbox(&session{memory: w.db}, nil, Options{}))
		w.db.processes[p.id] = 0
		d := &drain{process: p, line: newLine("a", 16, EachEntity), kick: make(chan struct{}, 1)}
		for i := range 300 {
			w.db.enqueue("a", "e", fmt.Sprint("m", i))
		}
		d.mu.Lock()
		for seq := range int64(300) {
			d.mark([]outcome{{Seq: seq + 1, State: stateWaiting}})
		}
		d.mu.Unlock()
		if d.line.isIdle() {
			t.Error("the line may be given back before its notifications are marked")
		}
		p.writer.add(pending{outcome: outcome{Seq: 300, State: stateWaiting, Attempts: 1, Delay: time.Hour.Microseconds()}, drain: d})
		if more, err := p.writer.flush(t.Context()); more || err != nil {
			t.Fatalf("more to write: %v, %v", more, err)
		}
		if m := w.db.messages[300]; m.attempts != 1 {
			t.Error("the outcome waits for the marks")
		}
		for range 20 {
			if _, err := p.writer.flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if m := w.db.messages[300]; m.attempts != 1 || m.due.IsZero() {
			t.Errorf("the retry is due at %v after %d attempts", m.due, m.attempts)
		}
		if _, seen := p.writer.unwritten(); seen > 0 || !d.line.isIdle() {
			t.Errorf("%d wait to be marked", seen)
		}
	})
}

// TestPausesAreWrittenTogether: a client with many receivers that fail makes one write of its
// pauses a second, and not one for each failure.
func TestPausesAreWrittenTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for h := range 40 {
			entity := fmt.Sprint("e", h)
			w.set("a", entity, w.host(h, &peer{takes: 10 * time.Millisecond, respond: func(string) int { return 500 }}))
			for i := range 10 {
				w.db.enqueue("a", entity, fmt.Sprint("m", h, "-", i))
			}
		}
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		time.Sleep(10 * time.Second)
		if n := w.db.counted()["pauses"]; n == 0 || n > 11 {
			t.Errorf("%d writes of pauses in ten seconds, want one a second", n)
		}
	})
}

// TestReturnedLineStartsNothing: once a line is about to be given back, another process may have
// it, so nothing starts in it.
func TestReturnedLineStartsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(1, &peer{}))
		p := w.run(Options{}, deliver.Options{})
		defer p.stop()
		w.db.enqueue("a", "e", "m1")
		time.Sleep(time.Second)
		p.box.mu.Lock()
		running := p.box.process
		p.box.mu.Unlock()
		running.mu.Lock()
		d := running.lines["a"]
		running.mu.Unlock()
		d.mu.Lock()
		d.giveBack(0)
		r := d.line.receiver(d.line.routes["e"])
		d.line.add(&message{row: row{position: position{seq: 9}, entity: "e", id: "m9", body: []byte("{}")}}, r)
		if m := d.next(time.Now()); m != nil {
			t.Errorf("%s starts in a line that is being given back", m.id)
		}
		d.mu.Unlock()
	})
}
