package deliver

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/ratelimit"
	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
)

var (
	success = verdict{effect: effectSuccess}
	failure = verdict{effect: effectFailure}
)

// limitTo returns a limiter with the same limits for all clients.
func limitTo(perClient, perReceiver int, maxPause time.Duration) *limiter {
	return newLimiter(&Options{PerClient: perClient, PerReceiver: perReceiver, MaxPause: maxPause})
}

// try returns what an attempt gets at a time.
func try(l *limiter, client, hostport string, now time.Time) (*slot, Reason, time.Duration) {
	s, r := l.acquire(receiverKey{client, hostport}, time.Time{}, now, false)
	if s != nil {
		return s, r.Reason, r.Wait
	}
	return nil, r.Reason, stagger(r.Wait)
}

// mustAcquire returns a slot that must be free.
func mustAcquire(t *testing.T, l *limiter, client, hostport string, now time.Time) *slot {
	t.Helper()
	s, reason, wait := try(l, client, hostport, now)
	if s == nil {
		t.Fatalf("%s at %s was deferred: %s, %v", client, hostport, reason, wait)
	}
	if reason != "" || wait != 0 {
		t.Fatalf("a slot with reason %q and a wait of %v", reason, wait)
	}
	return s
}

// mustDefer returns the wait of an attempt that must not get a slot.
func mustDefer(t *testing.T, l *limiter, client, hostport string, now time.Time, want Reason) time.Duration {
	t.Helper()
	s, reason, wait := try(l, client, hostport, now)
	if s != nil || reason != want || wait <= 0 {
		t.Fatalf("%s at %s: slot %v, reason %q, wait %v; want %q", client, hostport, s != nil, reason, wait, want)
	}
	return wait
}

// fail has n attempts in a row fail, each after a second.
func fail(t *testing.T, l *limiter, client, hostport string, now time.Time, n int) time.Time {
	t.Helper()
	for range n {
		s := mustAcquire(t, l, client, hostport, now)
		now = now.Add(time.Second)
		s.release(now, failure)
	}
	return now
}

// limiterModel decides as the limiter does, with unbounded memory.
type limiterModel struct {
	perClient, perReceiver int
	maxPause               time.Duration
	clients                map[string]int
	receivers              map[receiverKey]*receiverModel
}

type receiverModel struct {
	underway, failures int
	pause              time.Duration
	retry, asked       time.Time
}

func (m *limiterModel) receiver(key receiverKey) *receiverModel {
	if m.receivers[key] == nil {
		m.receivers[key] = new(receiverModel)
	}
	return m.receivers[key]
}

func (m *limiterModel) acquire(key receiverKey, now time.Time) Reason {
	switch r := m.receiver(key); {
	case now.Before(r.retry), now.Before(r.asked):
		return ReasonPaused
	case r.failures >= 5 && r.underway > 0, r.underway >= m.perReceiver, m.clients[key.client] >= m.perClient:
		return ReasonBusy
	default:
		r.underway++
		m.clients[key.client]++
		return ""
	}
}

func (m *limiterModel) release(key receiverKey, start, now time.Time, v verdict) {
	r := m.receiver(key)
	r.underway--
	m.clients[key.client]--
	if v.effect == effectSuccess {
		*r = receiverModel{underway: r.underway, asked: r.asked}
	}
	if v.effect == effectFailure {
		r.failures++
		if r.failures == 5 {
			r.pause = min(5*time.Second, m.maxPause)
			r.retry = now.Add(r.pause)
		} else if r.failures > 5 && !start.Before(r.retry) {
			r.pause = min(2*r.pause, m.maxPause)
			r.retry = now.Add(r.pause)
		}
	}
	if asked := now.Add(v.pause); v.pause > 0 && asked.After(r.asked) {
		r.asked = asked
	}
}

// TestLimiterModel compares the limiter with the model by random steps. Some are the first moments
// after a pause.
func TestLimiterModel(t *testing.T) {
	type attempt struct {
		key   receiverKey
		slot  *slot
		start time.Time
	}
	random := rand.New(rand.NewPCG(1, 2))
	reasons := map[Reason]int{}
	for round := range 300 {
		perClient, perReceiver := 1+random.IntN(6), 1+random.IntN(4)
		maxPause := time.Duration(1+random.IntN(60)) * time.Second
		l := limitTo(perClient, perReceiver, maxPause)
		m := &limiterModel{perClient, perReceiver, maxPause, map[string]int{}, map[receiverKey]*receiverModel{}}
		now := time.Unix(1e9, 0)
		var underway []attempt
		for step := range 400 {
			now = now.Add(time.Duration(random.ExpFloat64() * float64(time.Second)))
			if len(underway) > 0 && random.IntN(2) == 0 {
				i := random.IntN(len(underway))
				a := underway[i]
				underway = slices.Delete(underway, i, i+1)
				v := verdict{effect: []effect{effectNone, effectSuccess, effectFailure, effectFailure, effectFailure, effectFailure}[random.IntN(6)]}
				if random.IntN(10) == 0 {
					v.pause = time.Duration(random.Int64N(int64(maxPause) + 1))
				}
				a.slot.release(now, v)
				m.release(a.key, a.start, now, v)
				continue
			}
			key := receiverKey{fmt.Sprint(random.IntN(2)), fmt.Sprint(random.IntN(2))}
			if end := m.receiver(key).retry; end.After(now) && random.IntN(4) == 0 {
				now = end // the first moment after a pause
			}
			want := m.acquire(key, now)
			s, reason, wait := try(l, key.client, key.hostport, now)
			if reason != want || (s != nil) != (want == "") || (wait > 0) != (want != "") {
				t.Fatalf("round %d, step %d: slot %v, reason %q, wait %v; want %q", round, step, s != nil, reason, wait, want)
			}
			if reason == ReasonPaused && wait > 2*maxPause {
				t.Fatalf("round %d, step %d: wait %v with a longest pause of %v", round, step, wait, maxPause)
			}
			reasons[reason]++
			if s != nil {
				underway = append(underway, attempt{key, s, now})
			}
		}
		for _, a := range underway {
			a.slot.release(now, success)
		}
		if len(l.clients) != 0 || len(l.receivers) != 0 {
			t.Fatalf("round %d: %d clients and %d receivers have attempts under way", round, len(l.clients), len(l.receivers))
		}
	}
	for _, reason := range []Reason{"", ReasonBusy, ReasonPaused} {
		if reasons[reason] < 1000 {
			t.Errorf("only %d attempts with reason %q", reasons[reason], reason)
		}
	}
}

// TestWaits: however many messages are deferred at once, they come back at different times: those
// for a busy receiver in about the time in which a slot becomes free, though not sooner than in a
// tenth of a second, and the others from the end of the pause on.
func TestWaits(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name        string
		takes       time.Duration // of the attempts before, if the receiver is busy
		hangs       time.Duration // since then
		pause       time.Duration // if it's paused
		least, most time.Duration
	}{
		{"no response yet", 0, 0, 0, 100 * ms, 200 * ms},
		{"fast", 10 * ms, 0, 0, 100 * ms, 200 * ms},
		{"slow", 8 * time.Second, 0, 0, time.Second, 4 * time.Second},
		{"hangs", 10 * ms, 20 * time.Second, 0, 5 * time.Second, 10 * time.Second},
		{"at the end of a pause", 0, 0, ms, 100 * ms, 200 * ms},
		{"short pause", 0, 0, 5 * time.Second, 5 * time.Second, 10 * time.Second},
		{"long pause", 0, 0, time.Hour, time.Hour, time.Hour + time.Minute},
	} {
		for _, limits := range [][2]int{{16, 4}, {4, 16}} { // of the receiver, of the client
			l, now, reason := limitTo(limits[0], limits[1], time.Hour), time.Now(), ReasonPaused
			if tt.pause > 0 {
				mustAcquire(t, l, "acme", "a:443", now).release(now, verdict{effectFailure, tt.pause})
			} else {
				reason = ReasonBusy
				mustAcquire(t, l, "acme", "a:443", now) // the receiver isn't forgotten
				for range 20 {
					s := mustAcquire(t, l, "acme", "a:443", now)
					now = now.Add(tt.takes)
					s.release(now, success)
				}
				for range 3 {
					mustAcquire(t, l, "acme", "a:443", now)
				}
				now = now.Add(tt.hangs)
			}
			waits := map[time.Duration]bool{}
			for range 1000 {
				wait := mustDefer(t, l, "acme", "a:443", now, reason)
				if wait < tt.least || wait > tt.most {
					t.Fatalf("%s: wait %v, want %v to %v", tt.name, wait, tt.least, tt.most)
				}
				waits[wait] = true
			}
			if len(waits) < 900 {
				t.Errorf("%s: %d different waits of 1000", tt.name, len(waits))
			}
		}
	}
}

// TestResumeUnderWay: the end of a pause by the host applies to a receiver that is being tried,
// too: it has all its slots from now on.
func TestResumeUnderWay(t *testing.T) {
	l, now := limitTo(16, 4, time.Hour), time.Now()
	now = fail(t, l, "acme", "a:443", now, 5).Add(pause.First)
	tried := mustAcquire(t, l, "acme", "a:443", now)
	mustDefer(t, l, "acme", "a:443", now, ReasonBusy)
	l.resume(receiverKey{"acme", "a:443"})
	for range 3 {
		defer mustAcquire(t, l, "acme", "a:443", now).release(now, success)
	}
	mustDefer(t, l, "acme", "a:443", now, ReasonBusy)
	tried.release(now, failure)
	mustAcquire(t, l, "acme", "a:443", now).release(now, success)
}

// TestIsBounded: a client with very many host names has no more attempts under way than
// others, fills no memory, and no attempt that is under way is forgotten.
func TestIsBounded(t *testing.T) {
	l, now := limitTo(16, 4, time.Hour), time.Now()
	for range 4 {
		mustAcquire(t, l, "other", "a:443", now)
	}
	fail(t, l, "third", "a:443", now, 5)
	for i := range 2 * maxIdle {
		host := fmt.Sprint(i)
		mustAcquire(t, l, "acme", host, now).release(now, failure)
		// A lookup is a use: the pauses of receivers with messages are kept.
		mustDefer(t, l, "third", "a:443", now, ReasonPaused)
	}
	if l.idle.Len() != maxIdle || len(l.receivers) != 1 || len(l.clients) != 1 {
		t.Errorf("%d receivers idle, %d active, %d clients", l.idle.Len(), len(l.receivers), len(l.clients))
	}
	mustDefer(t, l, "other", "a:443", now, ReasonBusy)

	for i := range 16 {
		mustAcquire(t, l, "acme", fmt.Sprint(i), now)
	}
	for i := range 1000 {
		mustDefer(t, l, "acme", fmt.Sprint("new", i), now, ReasonBusy)
	}
	if len(l.receivers) != 17 || l.idle.Len() > maxIdle {
		t.Errorf("%d receivers active, %d idle", len(l.receivers), l.idle.Len())
	}
}

// TestIsSharedFairly: a client with very many host names that fail does not make the limiter
// forget the pause of another client's receiver.
func TestIsSharedFairly(t *testing.T) {
	l, now := limitTo(16, 4, time.Hour), time.Now()
	mustAcquire(t, l, "acme", "a:443", now).release(now, verdict{effectFailure, time.Hour})
	for i := range maxIdle + 1 {
		mustAcquire(t, l, "other", fmt.Sprint(i), now).release(now, failure)
	}
	mustDefer(t, l, "acme", "a:443", now, ReasonPaused)
}

// TestTestsAreSharedFairly: a client that tests many receivers doesn't end the interval between
// the tests of another client.
func TestTestsAreSharedFairly(t *testing.T) {
	l, now := limitTo(16, 4, time.Hour), time.Now()
	l.testers = ratelimit.New[string](maxTested+2, time.Second, 2) // which would end this much earlier
	test := func(client, hostport string) Result {
		s, r := l.acquire(receiverKey{client, hostport}, time.Time{}, now, true)
		if s != nil {
			s.release(now, success)
		}
		return r
	}
	test("acme", "a:443")
	for i := range maxTested + 1 {
		if r := test("other", fmt.Sprint(i)); r.Outcome != 0 {
			t.Fatalf("test %d: %v", i, r)
		}
	}
	if r := test("acme", "a:443"); r.Reason != ReasonBusy {
		t.Errorf("a second test gets %v", r)
	}
	if r := test("other", "0"); r.Outcome != 0 {
		t.Errorf("the receiver that was evicted gets %v", r)
	}
}

// TestHealthyAreNotKept: of receivers that respond, nothing stays.
func TestHealthyAreNotKept(t *testing.T) {
	l, now := limitTo(16, 4, time.Hour), time.Now()
	fail(t, l, "acme", "a:443", now, 4)
	mustAcquire(t, l, "acme", "a:443", now).release(now, success)
	mustAcquire(t, l, "acme", "b:443", now).release(now, verdict{effectSuccess, time.Minute})
	now = now.Add(time.Minute)
	mustAcquire(t, l, "acme", "b:443", now).release(now, success)
	if l.idle.Len()+len(l.receivers)+len(l.clients) != 0 {
		t.Errorf("%d idle, %d active, %d clients", l.idle.Len(), len(l.receivers), len(l.clients))
	}
}
