package line

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// calm returns a history in which nothing happens by chance.
func calm(t *testing.T) *history {
	h := newHistory(t, 1)
	h.limits = Limits{PerClient: 16, PerHost: 4, MaxPause: time.Hour}
	h.steady = true
	h.claim()
	h.pass(time.Second)
	return h
}

func (h *history) override(entity, host string, target uint64) {
	h.set(entity, func() { h.overrides[entity] = h.hook(host, target, true) })
}

func (h *history) setAll(host string, target uint64) {
	h.set("", func() { clear(h.overrides); h.base = h.hook(host, target, false) })
}

// delivered returns how many notifications of an entity have ended.
func (h *history) delivered(entity string) (n int) {
	for _, s := range h.rows {
		if s.entity == entity && s.ended {
			n++
		}
	}
	return n
}

// await lets time pass until n notifications of an entity have ended, and returns how long.
func (h *history) await(entity string, n int, most time.Duration) time.Duration {
	h.t.Helper()
	start := h.now
	for h.delivered(entity) < n {
		if h.pass(10 * time.Millisecond); h.now.Sub(start) > most {
			h.t.Fatalf("%d of %s have ended after %v, want %d", h.delivered(entity), entity, most, n)
		}
	}
	return h.now.Sub(start)
}

// TestOneHost: a webhook that fails doesn't delay others on its host, whatever waits for it.
func TestOneHost(t *testing.T) {
	h := calm(t)
	h.down["a/9"] = Failure
	h.override("bad", "a", 9)
	h.enqueue("bad", 500)
	h.pass(time.Minute)
	h.enqueue("good", 1)
	h.await("good", 1, 200*time.Millisecond)
	h.enqueue("bad", 500)
	h.enqueue("good", 1)
	h.await("good", 2, 200*time.Millisecond)
}

// TestDeadBase: an override gets its notifications whatever waits for a base that fails, also if
// it's set afterwards, and if another process goes on.
func TestDeadBase(t *testing.T) {
	for _, hasOther := range []bool{false, true} {
		t.Run(fmt.Sprint(hasOther), func(t *testing.T) {
			h := calm(t)
			if hasOther {
				h.override("other", "b", 1)
			}
			h.down["a/1"] = Failure
			for i := range 2000 {
				h.enqueue(fmt.Sprint("e", i), 1)
			}
			h.enqueue("late", 3)
			h.pass(10 * time.Minute)
			h.override("late", "b", 2)
			h.await("late", 3, 2*time.Second)
			h.enqueue("late", 1)
			h.await("late", 4, 200*time.Millisecond)
			h.restart()
			h.enqueue("late", 1)
			h.await("late", 5, 2*time.Second)
		})
	}
}

// TestRepairedAndSetAgain: once a base that failed is set to another URL, all that waits goes out as
// fast as the slots allow, and nothing was written for that.
func TestRepairedAndSetAgain(t *testing.T) {
	h := calm(t)
	h.down["a/1"] = Failure
	const n = 1500
	for i := range n {
		h.enqueue(fmt.Sprint("e", i), 1)
	}
	h.pass(10 * time.Minute)
	writes := h.written
	h.setAll("a", 2)
	h.pass(2 * time.Second)
	start := h.now
	for h.waiting() > 0 && h.now.Sub(start) < time.Hour {
		h.pass(time.Second)
	}
	ideal := h.takes * n / 4
	if took := h.now.Sub(start) + 2*time.Second; took > ideal*11/10 {
		t.Errorf("took %v, want %v", took, ideal)
	}
	if h.written-writes != n {
		t.Errorf("%d writes, want one for each of %d", h.written-writes, n)
	}
}

// TestSameAgain: the same URL set again gets one attempt at once, at most once a minute, and what
// was known stays. Another one forgets it.
func TestSameAgain(t *testing.T) {
	h := calm(t)
	h.down["a"] = Failure
	for i := range 100 {
		h.enqueue(fmt.Sprint("e", i), 1)
	}
	h.pass(30 * time.Minute)
	known, before := h.line.base.pause, h.attempts
	for range 30 {
		h.setAll("a", 1)
		h.pass(2 * time.Second)
	}
	if got := h.attempts - before; got != 1 && got != 2 {
		t.Errorf("%d attempts in a minute of sets, want 1 or 2", got)
	}
	if p := h.line.base.pause; p.Failures <= known.Failures || p.Length < known.Length {
		t.Errorf("knows %+v, want more than %+v", p, known)
	}
	before = h.attempts
	h.setAll("a", 2)
	h.pass(time.Second)
	if got := h.attempts - before; got < 5 {
		t.Errorf("%d attempts at another URL, want 5", got)
	}
}

// TestSetAgainAndAgain: a client that sets its webhook over and over makes no work that grows with
// what waits.
func TestSetAgainAndAgain(t *testing.T) {
	work := func(n int) int {
		h := calm(t)
		h.down["a"] = Failure
		for i := range n {
			h.enqueue(fmt.Sprint("e", i), 1)
		}
		h.pass(10 * time.Minute)
		before := h.read
		for i := range 50 {
			h.setAll("a", uint64(1+i%2))
			h.pass(100 * time.Millisecond)
		}
		return h.read - before
	}
	if few, many := work(500), work(3000); many > 2*few {
		t.Errorf("50 sets read %d notifications of 3000, and %d of 500", many, few)
	}
}

// TestManyDeadOverrides: overrides that fail cost the base nothing, however many there are, and
// neither does another process that goes on.
func TestManyDeadOverrides(t *testing.T) {
	h := calm(t)
	const n = 500
	for i := range n {
		entity, host := fmt.Sprint("dead", i), fmt.Sprint("h", i)
		h.down[host] = []Effect{Failure, NoConnection}[i%2]
		h.overrides[entity] = h.hook(host, 1, true)
	}
	h.line.Changed("", h.now)
	h.line.SetAlone(false)
	for i := range n {
		h.enqueue(fmt.Sprint("dead", i), 2)
	}
	h.enqueue("good", 1)
	h.await("good", 1, 30*time.Second)
	h.pass(time.Minute)
	for i := range 3 {
		h.enqueue("good", 1)
		h.await("good", 2+i, 200*time.Millisecond)
	}
	h.restart()
	h.enqueue("good", 1)
	h.await("good", 5, 5*time.Second)
}

// TestOneEntity: an entity with very many notifications doesn't delay others.
func TestOneEntity(t *testing.T) {
	h := calm(t)
	h.enqueue("busy", 3000)
	for i := range 20 {
		h.enqueue(fmt.Sprint("e", i), 1)
	}
	for i := range 20 {
		h.await(fmt.Sprint("e", i), 1, 500*time.Millisecond)
	}
}

// TestSentAgain: what's sent again doesn't delay what is new.
func TestSentAgain(t *testing.T) {
	h := calm(t)
	h.takes = 50 * time.Millisecond
	for i := range 900 {
		h.enqueue(fmt.Sprint("e", i), 1)
	}
	h.pass(time.Minute)
	for _, s := range h.rows {
		s.ended, s.group, s.due, s.resent = false, Again, h.now, 1
		h.open = append(h.open, s)
	}
	h.failing = true
	h.line.Resent()
	h.pass(time.Second)
	for i := range 5 {
		h.enqueue("new", 1)
		h.await("new", i+1, 300*time.Millisecond)
	}
	h.pass(20 * time.Second)
	if h.waiting() > 0 {
		t.Errorf("%d still wait", h.waiting())
	}
}

// TestQuiet: a line that has sent what there was asks for nothing, and can be given back.
func TestQuiet(t *testing.T) {
	h := calm(t)
	h.override("o", "b", 1)
	for i := range 10 {
		h.enqueue(fmt.Sprint("e", i), 3)
		h.enqueue("o", 1)
	}
	h.pass(time.Minute)
	before := h.questions
	h.pass(time.Hour)
	if h.questions != before || !h.line.IsIdle(h.now) || !h.line.Next().IsZero() {
		t.Errorf("%d questions without an event, idle: %v, next: %v", h.questions-before, h.line.IsIdle(h.now), h.line.Next())
	}
	if len(h.pauses) > 0 {
		t.Errorf("pauses are saved although nothing has failed: %v", h.pauses)
	}
}

// TestHostPause: a host that nobody can connect to pauses for all of its webhooks, and once somebody
// can, none of them waits for a pause of its own.
func TestHostPause(t *testing.T) {
	h := calm(t)
	h.down["b"] = NoConnection
	h.setAll("b", 100)
	for i := range 20 {
		entity := fmt.Sprint("e", i)
		h.override(entity, "b", uint64(i))
		h.enqueue(entity, 2)
		h.enqueue("of the base", 1)
	}
	h.pass(10 * time.Minute)
	before := h.attempts
	h.pass(10 * time.Minute)
	if got := h.attempts - before; got > 5 {
		t.Errorf("%d attempts at a host in ten minutes of pauses", got)
	}
	if got := len(h.line.rows); got > 1 {
		t.Errorf("%d notifications are in the window while nothing can go", got)
	}
	delete(h.down, "b")
	until := h.line.overrides["e0"].opens()
	h.pass(until.Sub(h.now) + 3*time.Second)
	for i := range 20 {
		if entity := fmt.Sprint("e", i); h.delivered(entity) != 2 {
			t.Errorf("%d of 2 of %s are delivered after the pause", h.delivered(entity), entity)
		}
	}
	if got := h.delivered("of the base"); got < 15 { // some wait for a retry
		t.Errorf("%d of 20 of the base are delivered after the pause, want 15", got)
	}
}

// TestUnproven: webhooks that nobody knows to work, all of which hang, leave half of the client's
// slots to others.
func TestUnproven(t *testing.T) {
	h := calm(t)
	h.override("good", "good", 1)
	h.enqueue("good", 1)
	h.await("good", 1, time.Second)
	h.slow = time.Minute
	for i := range 40 {
		entity, host := fmt.Sprint("bad", i), fmt.Sprint("slow", i)
		h.override(entity, host, 1)
		h.enqueue(entity, 3)
	}
	h.pass(time.Second)
	if got, most := h.line.underWay, h.limits.PerClient/2; got != most {
		t.Errorf("%d attempts are under way, want %d", got, most)
	}
	for i := range 5 {
		h.enqueue("good", 1)
		h.await("good", 2+i, 200*time.Millisecond)
	}
}

// TestUnset: what waits for an override that's removed goes to the base.
func TestUnset(t *testing.T) {
	h := calm(t)
	h.down["b"] = Failure
	h.override("e", "b", 1)
	h.enqueue("e", 100)
	h.pass(time.Hour)
	h.set("e", func() { delete(h.overrides, "e") })
	h.await("e", 100, 5*time.Second)
	if n := len(h.line.overrides); n != 0 {
		t.Errorf("%d overrides are known", n)
	}
}

// TestRestore: whoever has the line next knows of the pauses, until the webhook is set again.
func TestRestore(t *testing.T) {
	h := calm(t)
	h.down["a"], h.down["b"] = NoConnection, Failure
	h.override("e", "b", 1)
	h.override("other", "a", 2)
	for _, entity := range []string{"e", "other", "x", "y"} {
		h.enqueue(entity, 20)
	}
	h.pass(10 * time.Minute)
	h.restart()
	before := h.attempts
	h.pass(10 * time.Second)
	if got := h.attempts - before; got > 2 {
		t.Errorf("%d attempts after a restart, want at most one for each pause", got)
	}
	h.pass(time.Hour)
	clear(h.down)
	for h.waiting() > 0 { // by itself, after the pauses
		if h.pass(time.Minute); h.now.Sub(time.Unix(1_800_000_000, 0)) > 24*time.Hour {
			t.Fatalf("%d still wait", h.waiting())
		}
	}
	for i := range 3 {
		for _, entity := range []string{"e", "other", "x"} {
			h.enqueue(entity, 1)
			h.await(entity, 21+i, 200*time.Millisecond)
		}
	}
	for i := range 20 {
		h.enqueue(fmt.Sprint("more", i), 1)
	}
	h.pass(h.takes / 2)
	if h.line.underWay != 4 {
		t.Errorf("%d attempts are under way at a host that works again, want 4", h.line.underWay)
	}
}

// TestRestoredAndSet: a webhook that was set since its pause was saved isn't paused.
func TestRestoredAndSet(t *testing.T) {
	h := calm(t)
	h.down["a/1"], h.down["b/1"] = Failure, Failure
	h.override("e", "b", 1)
	h.enqueue("e", 10)
	for i := range 20 {
		h.enqueue(fmt.Sprint("x", i), 1)
	}
	h.pass(10 * time.Minute)
	h.down["c"] = NoConnection
	h.override("o", "c", 1)
	h.enqueue("o", 10)
	h.pass(10 * time.Minute)
	delete(h.down, "c")
	h.overrides["e"], h.overrides["o"], h.base = h.hook("b", 2, true), h.hook("c", 2, true), h.hook("a", 2, false)
	h.restart()
	h.await("e", 10, 5*time.Second)
	h.await("o", 10, 5*time.Second)
	for i := range 20 {
		h.await(fmt.Sprint("x", i), 1, time.Second)
	}
}

// TestTurnsOfRetries: with one slot, retries and what is new take turns.
func TestTurnsOfRetries(t *testing.T) {
	h := calm(t)
	h.limits.PerHost = 1
	for i := range 40 {
		s := &stored{seq: int64(len(h.rows) + 1), entity: fmt.Sprint("r", i), group: groupOf(h.base.Setting, false, true), attempts: 1}
		h.rows, h.open = append(h.rows, s), append(h.open, s)
	}
	h.restart()
	for i := range 40 {
		h.enqueue(fmt.Sprint("n", i), 1)
	}
	h.pass(40 * h.takes)
	for h.delivered("r19") == 0 {
		h.pass(h.takes)
	}
	fresh := 0
	for i := range 40 {
		fresh += h.delivered(fmt.Sprint("n", i))
	}
	if fresh < 15 || fresh > 25 {
		t.Errorf("%d new ones went beside 20 retries", fresh)
	}
}

// TestWork: notifications that fail cost a question for each retry that's due at most.
func TestWork(t *testing.T) {
	h := calm(t)
	h.limits.MaxPause = time.Second
	h.restart()
	h.down["a"], h.down["b"] = Failure, NoConnection
	h.override("o", "b", 1)
	for i := range 30 {
		h.enqueue(fmt.Sprint("e", i), 1)
	}
	h.enqueue("o", 5)
	h.pass(3 * time.Hour)
	t.Logf("%d questions, %d attempts", h.questions, h.attempts)
	if most := h.attempts + 20; h.questions > most {
		t.Errorf("%d questions for %d attempts", h.questions, h.attempts)
	}
}

// TestWorksAgain: if the caller says that a webhook works again, an attempt is made at once, whether it
// was the webhook or its host that failed.
func TestWorksAgain(t *testing.T) {
	for _, effect := range []Effect{Failure, NoConnection} {
		h := calm(t)
		h.down["a"] = effect
		h.enqueue("e", 3)
		h.pass(30 * time.Minute)
		delete(h.down, "a")
		before := h.attempts
		h.line.Changed("", h.now)
		h.pass(100 * time.Millisecond)
		if h.attempts == before {
			t.Errorf("effect %d: no attempt", effect)
		}
	}
}

// TestProbeReadsOne: an override that fails reads one notification for each attempt, however many wait.
func TestProbeReadsOne(t *testing.T) {
	h := calm(t)
	h.down["b"] = Failure
	h.override("o", "b", 1)
	for range 100 {
		h.enqueue("o", 5)
	}
	h.pass(time.Hour)
	read, attempts := h.read, h.attempts
	h.pass(24 * time.Hour)
	if read, attempts = h.read-read, h.attempts-attempts; attempts < 20 || read > attempts {
		t.Errorf("%d attempts, and %d were read", attempts, read)
	}
}

// TestOverrideReadsPages: an override with a backlog reads several notifications at a time.
func TestOverrideReadsPages(t *testing.T) {
	h := calm(t)
	h.override("o", "b", 1)
	h.enqueue("o", 400)
	h.pass(time.Second)
	before, left := h.questions, h.waiting()
	h.await("o", 400, time.Minute)
	if got := h.questions - before; got > left/3 {
		t.Errorf("%d questions for %d notifications", got, left)
	}
}

// TestFailedQuestions: while nothing can be read, the line asks about once a second, and goes on
// soon after.
func TestFailedQuestions(t *testing.T) {
	h := calm(t)
	h.cutOff = true
	h.enqueue("e", 3)
	before := h.questions
	h.pass(time.Minute)
	if got := h.questions - before; got < 30 || got > 130 {
		t.Errorf("%d questions in a minute, want about one a second", got)
	}
	h.cutOff = false
	h.await("e", 3, 3*time.Second)
}

// TestOurFailure: an entity that our side fails for is tried again within half a minute, and others
// go on. Its first notification is in the table with the time of the next try.
func TestOurFailure(t *testing.T) {
	h := calm(t)
	h.override("bad", "b", 1)
	h.enqueue("bad", 1)
	h.await("bad", 1, time.Second)
	h.refuses = "bad"
	h.enqueue("bad", 40)
	for i := range 300 {
		h.enqueue(fmt.Sprint("e", i%50), 1)
	}
	h.pass(5 * time.Second)
	if h.waiting() != 40 {
		t.Errorf("%d wait, want the 40 of the entity", h.waiting())
	}
	before := h.questions
	h.pass(10 * time.Minute)
	if got := h.questions - before; got > 100 {
		t.Errorf("%d questions in ten minutes", got)
	}
	h.refuses = ""
	h.await("bad", 41, time.Minute)
}

// TestManyUnknown: if the webhooks of hundreds of entities can't be looked up, others go on, questions name
// few of them, and each is put off for longer and longer. Once they can be, all go out within a minute.
func TestManyUnknown(t *testing.T) {
	h := calm(t)
	h.override("one", "b", 1) // so that each is looked up
	h.pass(time.Minute)
	const n = 400
	for i := range n {
		name := fmt.Sprint("e", i)
		h.broken[name] = true
		h.enqueue(name, 2)
	}
	h.enqueue("good", 3)
	h.await("good", 3, 15*time.Second)
	h.pass(2 * time.Minute)
	if most := 2 * n * 10; h.written > most {
		t.Errorf("%d written in two minutes, want at most %d", h.written, most)
	}
	clear(h.broken)
	h.pass(time.Minute)
	if h.waiting() > 0 {
		t.Errorf("%d of %d still wait", h.waiting(), 2*n)
	}
	h.forgotten(maxKnown)
}

// TestManyRefused: if requests of hundreds of entities can't be made ready, others go on.
func TestManyRefused(t *testing.T) {
	h := calm(t)
	h.refuses, h.failing = "bad", true
	for i := range 200 {
		h.enqueue(fmt.Sprint("bad", i), 2)
	}
	h.enqueue("good", 3)
	h.await("good", 3, 5*time.Minute)
	h.refuses = ""
	h.pass(2 * time.Minute)
	if h.waiting() > 0 {
		t.Errorf("%d still wait", h.waiting())
	}
}

// TestRetryShare: retries have half of a host's slots at most while others wait, and all of them
// otherwise.
func TestRetryShare(t *testing.T) {
	h := calm(t)
	h.takes, h.lingers = time.Second, 3*time.Second
	for i := range 200 {
		s := &stored{seq: int64(len(h.rows) + 1), entity: fmt.Sprint("r", i), group: groupOf(h.base.Setting, false, true), attempts: 1}
		h.rows, h.open = append(h.rows, s), append(h.open, s)
	}
	h.restart()
	h.pass(10 * time.Millisecond)
	if got := h.line.base.host.tried; got != 4 {
		t.Errorf("%d retries are under way while nothing else waits, want 4", got)
	}
	for i := range 200 {
		h.enqueue(fmt.Sprint("n", i), 1)
	}
	h.pass(10 * time.Second)
	if got := h.line.base.host.tried; got != 2 || h.line.underWay != 4 {
		t.Errorf("%d of %d under way are retries, want 2 of 4", got, h.line.underWay)
	}
}

// TestAskedPause: a receiver that asks for a pause gets it, and after that all of its slots are in
// use again.
func TestAskedPause(t *testing.T) {
	h := calm(t)
	h.takes = 100 * time.Millisecond
	h.asks = 10 * time.Second
	h.enqueue("e0", 1)
	h.pass(time.Second)
	h.asks = 0
	for i := range 20 {
		h.enqueue(fmt.Sprint("e", i), 1)
	}
	before := h.attempts
	h.pass(8 * time.Second)
	if h.attempts != before {
		t.Errorf("%d attempts during the pause", h.attempts-before)
	}
	h.pass(1300 * time.Millisecond)
	if h.line.underWay != 4 {
		t.Errorf("%d attempts are under way after the pause, want 4", h.line.underWay)
	}
}

// TestSentAgainUnderWay: what's sent again while an attempt is under way is sent again after it,
// whatever becomes of that.
func TestSentAgainUnderWay(t *testing.T) {
	h := calm(t)
	h.down["a/1"] = Failure
	h.enqueue("e", 1)
	h.pass(time.Second)
	h.takes = time.Second
	h.pass(4100 * time.Millisecond) // the retry
	if h.line.underWay != 1 {
		t.Fatalf("%d attempts are under way, want the retry", h.line.underWay)
	}
	s := h.rows[0]
	s.group, s.due, s.resent, s.attempts = Again, h.now, 1, 0
	h.line.Resent()
	delete(h.down, "a/1")
	before := h.attempts
	h.await("e", 1, 3*time.Second)
	if got := h.attempts - before; got != 1 {
		t.Errorf("%d further attempts, want one", got)
	}
}

// TestForgets: a client that sets many webhooks leaves nothing behind in memory.
func TestForgets(t *testing.T) {
	h := calm(t)
	for i := range 300 {
		host := fmt.Sprint("h", i)
		switch i % 3 {
		case 0:
			h.down[host] = []Effect{Failure, NoConnection}[i%2]
		case 1:
			h.down[host+"/1"] = Failure
		}
		h.setAll(host, 1)
		h.override(fmt.Sprint("e", i), host, 2)
		h.enqueue(fmt.Sprint("e", i), 2)
		h.enqueue("x", 2)
		h.pass(300 * time.Millisecond)
	}
	clear(h.down)
	h.setAll("a", 1)
	h.pass(3 * time.Hour)
	h.forgotten(0)
}

// TestWindow: what's in memory is bounded, for a host, for all overrides and for the base.
func TestWindow(t *testing.T) {
	for name, tt := range map[string]struct {
		hosts, most int
		isSet       bool // before
	}{
		"one host": {1, roomHost * 4, true}, "many hosts": {400, roomOverrides, true},
		"one host, set now": {1, roomHost * 4, false}, "many hosts, set now": {400, roomOverrides, false},
	} {
		t.Run(name, func(t *testing.T) {
			h := calm(t)
			h.slow = time.Hour
			for i := range 400 {
				h.override(fmt.Sprint("e", i), fmt.Sprint("slow", i%tt.hosts), 1)
			}
			if tt.isSet {
				h.pass(time.Minute)
			}
			for i := range 400 {
				h.enqueue(fmt.Sprint("e", i), 10)
			}
			most := 0
			for range 50 {
				h.pass(100 * time.Millisecond)
				most = max(most, len(h.line.rows)-h.line.leaving)
			}
			if most > tt.most || most < tt.most/2 {
				t.Errorf("%d notifications are in the window, want up to %d", most, tt.most)
			}
		})
	}
	h := calm(t)
	h.setAll("slow", 1)
	h.slow = time.Hour
	for i := range 2000 {
		h.enqueue(fmt.Sprint("e", i), 1)
	}
	h.pass(10 * time.Second)
	if got := len(h.line.rows) - h.line.leaving; got != roomBase {
		t.Errorf("%d notifications of the base are in the window, want %d", got, roomBase)
	}
}

// TestOrderBeyondTheWindow: what's enqueued doesn't overtake what was sorted before it, even while that is
// being written.
func TestOrderBeyondTheWindow(t *testing.T) {
	for _, isAlone := range []bool{true, false} {
		h := calm(t)
		if !isAlone {
			h.overrides["o"] = h.hook("b", 1, true)
			h.restart()
		}
		h.takes = time.Millisecond
		const n = 400 // more than fit
		for i := range 3 * n {
			if i%n == 0 {
				h.pass(5 * time.Millisecond) // the sorted ones are written after 20
			}
			name := i % n
			if i >= n {
				name = n - 1 - name // those that didn't fit come first
			}
			h.enqueue(fmt.Sprint("e", name), 1)
		}
		h.pass(time.Minute)
		if h.failing || h.waiting() > 0 {
			t.Errorf("%d wait", h.waiting())
		}
	}
}

// TestTurns: with fewer slots than webhooks that have something waiting, the base has every other one, and
// overrides have turns.
func TestTurns(t *testing.T) {
	h := calm(t)
	h.limits = Limits{PerClient: 2, PerHost: 2, MaxPause: time.Hour}
	h.restart()
	for _, name := range []string{"o1", "o2", "o3"} {
		h.override(name, "host of "+name, 1)
	}
	h.pass(time.Minute)
	for range 150 {
		for _, name := range []string{"o1", "o2", "o3", "e1", "e2"} {
			h.enqueue(name, 1)
		}
	}
	h.pass(60 * h.takes) // 120 attempts
	for _, name := range []string{"o1", "o2", "o3"} {
		if n := h.delivered(name); n < 10 || n > 30 {
			t.Errorf("%d of %s, want about 20", n, name)
		}
	}
	if n := h.delivered("e1") + h.delivered("e2"); n < 40 || n > 80 {
		t.Errorf("%d of the base, want about 60", n)
	}
}

// TestSetWhileSorted: an override gets what's being sorted to a dead base while it's set.
func TestSetWhileSorted(t *testing.T) {
	h := calm(t)
	h.down["a"] = Failure
	h.override("o", "b", 1)
	h.enqueue("e1", 10)
	h.pass(time.Hour)
	h.enqueue("e2", 1)
	h.pass(10 * time.Millisecond) // it's written after 20
	h.override("e2", "b", 1)
	h.await("e2", 1, 3*time.Second)
}

// TestHostWorksAgain: once an attempt has connected to a host that was down, all webhooks that lead there go
// on at once.
func TestHostWorksAgain(t *testing.T) {
	h := calm(t)
	h.down["b"] = NoConnection
	for i, name := range []string{"o1", "o2", "o3"} {
		h.override(name, "b", uint64(i))
		h.enqueue(name, 5)
	}
	h.pass(2 * time.Hour)
	delete(h.down, "b")
	h.line.Changed("o1", h.now)
	for _, name := range []string{"o1", "o2", "o3"} {
		h.await(name, 5, time.Second)
	}
}

// TestSetMeanwhile: what was under way at the former webhook and failed goes to the new one at once.
func TestSetMeanwhile(t *testing.T) {
	h := calm(t)
	h.setAll("slow", 1)
	h.slow, h.down["slow"] = 10*time.Second, Failure
	h.enqueue("e", 1)
	h.pass(5 * time.Second)
	h.setAll("b", 1)
	h.await("e", 1, 6*time.Second)
}

// TestSlowWrites: while nothing is written, no more is read to be sorted than can be remembered.
func TestSlowWrites(t *testing.T) {
	h := calm(t)
	h.down["a"] = Failure
	h.override("o", "b", 1)
	h.enqueue("e", 10)
	h.pass(10 * time.Minute)
	h.writing = true // and it never ends
	for i := range 5000 {
		h.enqueue(fmt.Sprint("e", i), 1)
	}
	h.pass(time.Second)
	if got := h.line.leaving; got <= maxLeaving || got > maxLeaving+pageSort {
		t.Errorf("%d wait to be written, want up to %d and a page", got, maxLeaving)
	}
}

// TestClientLimit: all hosts together have as many attempts under way as the client may, and no more.
func TestClientLimit(t *testing.T) {
	h := calm(t)
	h.limits = Limits{PerClient: 5, PerHost: 2, MaxPause: time.Hour}
	h.restart()
	for i := range 5 {
		for k := range 3 {
			entity := fmt.Sprint("e", i, "-", k)
			h.override(entity, fmt.Sprint("h", i), uint64(k))
			h.enqueue(entity, 1)
		}
	}
	h.pass(2 * time.Second) // all are known to work
	h.takes = time.Second
	for i := range 5 {
		for k := range 3 {
			h.enqueue(fmt.Sprint("e", i, "-", k), 1)
		}
	}
	h.pass(100 * time.Millisecond)
	if h.line.underWay != 5 {
		t.Errorf("%d attempts are under way, want 5", h.line.underWay)
	}
}

// TestStaleView: a view of the webhooks that goes back to a former setting for a moment costs
// attempts, and no more than that.
func TestStaleView(t *testing.T) {
	h := calm(t)
	h.override("e", "b", 1)
	was := h.overrides["e"]
	h.override("e", "b", 2)
	h.pass(30 * time.Second)
	h.down["b"] = Failure
	h.enqueue("e", 2)
	h.pass(time.Second)
	before := h.questions
	h.line.Looked("e", was, h.now)
	h.line.Looked("e", h.overrides["e"], h.now)
	h.pass(3 * time.Second)
	if got := h.questions - before; got > 5 {
		t.Errorf("%d questions in three seconds", got)
	}
	delete(h.down, "b")
	h.await("e", 2, 10*time.Minute)
}

// TestOverrideComesBack: a view in which an override is gone for a moment makes no retry go out early. What
// waits for it doesn't wait for the base afterwards, and makes no work.
func TestOverrideComesBack(t *testing.T) {
	h := calm(t)
	h.down["a"], h.down["b"] = Failure, Failure
	h.enqueue("x", 20)
	h.override("e", "b", 1)
	h.pass(6 * time.Hour) // the base pauses for an hour
	h.enqueue("x", 20)
	back := func() {
		h.line.Looked("e", h.base, h.now)
		h.line.Looked("e", h.overrides["e"], h.now)
	}
	h.enqueue("e", 3)
	h.pass(time.Second)
	back()
	before := h.attempts
	h.pass(3 * time.Second)
	if h.attempts > before {
		t.Errorf("%d attempts before a retry is due", h.attempts-before)
	}
	delete(h.down, "b")
	h.await("e", 3, 2*time.Second)

	h.down["b"] = Failure
	h.enqueue("e", 20)
	h.pass(3 * time.Minute) // some retries are due while it pauses, and others aren't
	for range 20 {
		back()
		h.pass(100 * time.Millisecond)
	}
	attempts, questions, written := h.attempts, h.questions, h.written
	h.pass(10 * time.Minute)
	attempts, questions, written = h.attempts-attempts, h.questions-questions, h.written-written
	if attempts == 0 || questions > 3*attempts || written > 3*attempts {
		t.Errorf("%d attempts, %d questions and %d writes in ten minutes of pauses", attempts, questions, written)
	}
}

// TestGoneUnnoticed: if an override is found to be gone before what waits for it could be asked for, the base
// gets all of it, also what waits since a former setting that the line hasn't heard of.
func TestGoneUnnoticed(t *testing.T) {
	h := calm(t)
	h.down["b"] = NoConnection
	h.override("o", "b", 1)
	h.override("e", "b", 1)
	h.enqueue("o", 5)
	h.enqueue("e", 3)
	h.pass(30 * time.Minute)
	h.override("e", "b", 2)
	h.broken["e"] = true
	h.restart()
	h.pass(time.Minute)
	h.broken["e"] = false
	h.pass(time.Minute)
	delete(h.overrides, "e")
	h.enqueue("e", 1)
	h.await("e", 4, 5*time.Second)
}

// TestAloneAgain: once a client has no overrides any more, what's new isn't read while what was sorted for
// the base before is still being written.
func TestAloneAgain(t *testing.T) {
	h := calm(t)
	h.limits = Limits{PerClient: 16, PerHost: 16, MaxPause: time.Hour}
	h.restart()
	h.line.SetAlone(false)
	h.pass(time.Minute)
	h.takes = time.Millisecond
	const n = 500 // more than fit
	for i := range n {
		h.enqueue(fmt.Sprint("e", i), 1)
	}
	h.pass(time.Millisecond) // writes take longer
	h.line.SetAlone(true)
	for i := range n {
		h.enqueue(fmt.Sprint("e", n-1-i), 1)
	}
	h.read = 0
	h.pass(time.Minute)
	if h.waiting() > 0 || h.read > 3*n {
		t.Errorf("%d wait, and %d were read", h.waiting(), h.read)
	}
}

// TestBacklogOfAnEntity: what's left of an entity with a backlog isn't read through again for the others
// each time that it comes back, since there are none.
func TestBacklogOfAnEntity(t *testing.T) {
	h := calm(t)
	const n = 400
	h.enqueue("busy", n)
	before := h.questions
	h.await("busy", n, time.Minute)
	if got, most := h.questions-before, n/(roomEntity/2)+10; got > most {
		t.Errorf("%d questions for %d of an entity, want %d at most", got, n, most)
	}
}

// TestDueEarlier: a notification that is due a moment before the line expects it, since answers take time, isn't
// overlooked behind a page that's full of others.
func TestDueEarlier(t *testing.T) {
	h := calm(t)
	h.takes = 5 * time.Millisecond
	sentAgain := func(entity string, due time.Duration) *stored {
		s := &stored{seq: int64(len(h.rows) + 1), entity: entity, group: Again, due: h.now.Add(due)}
		h.rows, h.open = append(h.rows, s), append(h.open, s)
		return s
	}
	for range 300 {
		sentAgain("busy", 0)
	}
	early := sentAgain("e", 60*time.Millisecond)
	h.line.Resent()
	h.pass(10 * time.Millisecond)
	early.due = early.due.Add(-30 * time.Millisecond)
	h.await("e", 1, 500*time.Millisecond) // the others take 1.5 seconds
}

// TestTimersDontPileUp: while a notification isn't due, news adds nothing to what's remembered for it.
func TestTimersDontPileUp(t *testing.T) {
	l := New(Limits{PerClient: 4, PerHost: 2, MaxPause: time.Hour}, rand.New(rand.NewPCG(1, 1)))
	now := time.Unix(1_800_000_000, 0)
	for range 100 {
		l.Resent()
		l.News()
		for q := l.Ask(now); q != nil; q = l.Ask(now) {
			a := Answer{Parts: make([]Found, len(q.Parts))}
			for i, p := range q.Parts {
				if p.Group == Again {
					a.Parts[i].Next = time.Hour
				}
			}
			l.Answer(q, a, now)
		}
		now = now.Add(time.Second)
	}
	if n := len(l.alarm.all); n > 1 {
		t.Errorf("%d timers are set for one group", n)
	}
}
