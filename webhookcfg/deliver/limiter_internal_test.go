package deliver

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"example.com/go-webhookcfg/internal/ratelimit"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
)

var (
	success      = verdict{effect: effectSuccess, hasResponse: true}
	failure      = verdict{effect: effectFailure, hasResponse: true}
	noConnection = verdict{effect: effectUnconnected}
)

// limitTo returns a limiter with the same limits for all clients.
func limitTo(perClient, perHost int, maxPause time.Duration) *limiter {
	return newLimiter(&Options{PerClient: perClient, PerHost: perHost, MaxPause: maxPause})
}

// override returns the key and the setting of a webhook that nobody else has at its host.
func override(client, hostport string) (webhookKey, setting) {
	return webhookKey{client, webhookcfg.Entity(hostport)}, setting{1, 1, hostport}
}

// try returns what an attempt at such a webhook gets at a time.
func try(l *limiter, client, hostport string, now time.Time) (*slot, Reason, time.Duration) {
	key, to := override(client, hostport)
	return tryAs(l, key, to, now)
}

func tryAs(l *limiter, key webhookKey, to setting, now time.Time) (*slot, Reason, time.Duration) {
	s, r := l.acquire(key, to, now, false)
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
func fail(t *testing.T, l *limiter, client, hostport string, now time.Time, n int, v verdict) time.Time {
	t.Helper()
	for range n {
		s := mustAcquire(t, l, client, hostport, now)
		now = now.Add(time.Second)
		s.release(now, v)
	}
	return now
}

// limiterModel decides as the limiter does.
type limiterModel struct {
	perClient, perHost int
	maxPause           time.Duration
	clients            map[string]int
	hosts              map[hostKey]*pauseModel
	webhooks           map[webhookKey]*webhookModel // also those that are forgotten: they're the zero one
}

type webhookModel struct {
	pauseModel
	setting setting
}

type pauseModel struct {
	underway, failures  int
	pause               time.Duration
	retry, asked, tried time.Time
	onTrial             bool
}

func (p *pauseModel) isPaused(now time.Time) bool { return now.Before(p.retry) || now.Before(p.asked) }
func (p *pauseModel) isUnwell(now time.Time) bool { return p.failures > 0 || p.isPaused(now) }
func (p *pauseModel) isFull() bool                { return p.underway > 0 && (p.failures >= 5 || p.onTrial) }

func (p *pauseModel) succeed() {
	*p = pauseModel{underway: p.underway, asked: p.asked, tried: p.tried}
}

func (p *pauseModel) fail(start, now time.Time, maxPause time.Duration) {
	p.failures++
	p.onTrial = false
	if p.failures == 5 {
		p.pause = min(5*time.Second, maxPause)
		p.retry = now.Add(p.pause)
	} else if p.failures > 5 && !start.Before(p.retry) {
		p.pause = min(2*p.pause, maxPause)
		p.retry = now.Add(p.pause)
	}
}

func (p *pauseModel) trial(now time.Time) {
	if !p.isPaused(now) {
		return
	}
	end := p.tried.Add(time.Minute)
	if !end.After(now) {
		end, p.tried = now, now
	}
	p.onTrial = true
	if p.retry.After(end) {
		p.retry = end
	}
	if p.asked.After(end) {
		p.asked = end
	}
}

func (m *limiterModel) host(key hostKey) *pauseModel {
	if m.hosts[key] == nil {
		m.hosts[key] = new(pauseModel)
	}
	return m.hosts[key]
}

func (m *limiterModel) webhook(key webhookKey) *webhookModel {
	if m.webhooks[key] == nil {
		m.webhooks[key] = new(webhookModel)
	}
	return m.webhooks[key]
}

func (m *limiterModel) acquire(key webhookKey, to setting, now time.Time) Reason {
	w, h := m.webhook(key), m.host(hostKey{key.client, to.hostport})
	wasKnown := w.setting != setting{}
	if w.setting != to {
		if w.setting.hostport != to.hostport || w.setting.target != to.target {
			w.pauseModel = pauseModel{underway: w.underway}
		} else {
			w.trial(now)
		}
		w.setting = to
		h.trial(now)
	}
	reason := Reason("")
	switch {
	case w.isPaused(now), h.isPaused(now):
		reason = ReasonPaused
	case w.isFull(), h.isFull(), h.underway >= m.perHost, m.clients[key.client] >= m.perClient:
		reason = ReasonBusy
	default:
		w.underway++
		h.underway++
		m.clients[key.client]++
	}
	if reason != "" && !wasKnown && !h.isUnwell(now) {
		*w = webhookModel{}
	}
	return reason
}

func (m *limiterModel) release(key webhookKey, as setting, start, now time.Time, v verdict) {
	w, h := m.webhook(key), m.host(hostKey{key.client, as.hostport})
	w.underway--
	h.underway--
	m.clients[key.client]--
	if v.effect == effectUnconnected {
		h.fail(start, now, m.maxPause)
	} else if v.hasResponse {
		h.succeed()
	}
	if w.setting.hostport == as.hostport && w.setting.target == as.target {
		if v.effect == effectSuccess {
			w.succeed()
		}
		if v.effect == effectFailure {
			w.fail(start, now, m.maxPause)
		}
		if asked := now.Add(v.pause); v.pause > 0 && asked.After(w.asked) {
			w.asked = asked
		}
	}
	if h.underway == 0 && !h.isUnwell(now) {
		*h = pauseModel{}
	}
	if w.underway == 0 && !w.isUnwell(now) && !m.host(hostKey{key.client, w.setting.hostport}).isUnwell(now) {
		*w = webhookModel{}
	}
}

// failing returns what the host sees of what fails or is paused.
func (m *limiterModel) failing(now time.Time) map[webhookKey]Failing {
	all := make(map[webhookKey]Failing)
	for key, w := range m.webhooks {
		h := m.host(hostKey{key.client, w.setting.hostport})
		if w.setting == (setting{}) || !w.isUnwell(now) && !h.isUnwell(now) {
			continue
		}
		f := Failing{Client: key.client, Scope: key.scope, HostPort: w.setting.hostport, Failures: max(w.failures, h.failures)}
		for _, end := range []time.Time{w.retry, w.asked, h.retry} {
			if end.After(now) && end.After(f.PausedUntil) {
				f.PausedUntil = end
			}
		}
		all[key] = f
	}
	return all
}

// TestLimiterModel compares the limiter with the model by random steps: attempts at webhooks that
// share hosts, sets of the same or another URL, and all that can come of an attempt. Some are the
// first moments after a pause.
func TestLimiterModel(t *testing.T) {
	type attempt struct {
		key   webhookKey
		as    setting
		slot  *slot
		start time.Time
	}
	verdicts := []verdict{
		{},
		{hasResponse: true},
		{effect: effectSuccess, hasResponse: true},
		{effect: effectFailure},
		{effect: effectFailure, hasResponse: true},
		{effect: effectUnconnected},
	}
	random := rand.New(rand.NewPCG(1, 2))
	reasons, trials := map[Reason]int{}, [2]int{}
	for round := range 300 {
		perClient, perHost := 1+random.IntN(6), 1+random.IntN(4)
		maxPause := time.Duration(1+random.IntN(200)) * time.Second
		weights := []int{1, 1, 2, 1, 6, 1} // of the verdicts
		if round%2 == 0 {
			weights = []int{1, 1, 1, 2, 1, 8}
		}
		l := limitTo(perClient, perHost, maxPause)
		m := &limiterModel{perClient, perHost, maxPause, map[string]int{}, map[hostKey]*pauseModel{}, map[webhookKey]*webhookModel{}}
		settings := map[webhookKey]setting{}
		now := time.Unix(1e9, 0)
		var underway []attempt
		for step := range 400 {
			now = now.Add(time.Duration(random.ExpFloat64() * float64(time.Second)))
			if len(underway) > 0 && random.IntN(2) == 0 {
				i := random.IntN(len(underway))
				a := underway[i]
				underway = slices.Delete(underway, i, i+1)
				v := pick(random, verdicts, weights)
				if v.effect == effectFailure && random.IntN(10) == 0 {
					v.pause = time.Duration(random.Int64N(int64(maxPause) + 1))
				}
				a.slot.release(now, v)
				m.release(a.key, a.as, a.start, now, v)
				continue
			}
			key := webhookKey{fmt.Sprint(random.IntN(2)), []webhookcfg.Scope{webhookcfg.All(), webhookcfg.Entity("e"), webhookcfg.Entity("f")}[random.IntN(3)]}
			to, isSet := settings[key]
			if !isSet || random.IntN(30) == 0 {
				since := random.Int64N(1000) // clocks differ
				if isSet && random.IntN(2) == 0 {
					to.since = since
				} else {
					to = setting{since, random.Uint64N(2), fmt.Sprint(random.IntN(2))}
				}
				settings[key] = to
			}
			w, h := m.webhook(key), m.host(hostKey{key.client, to.hostport})
			for _, end := range []time.Time{w.retry, h.retry} {
				if end.After(now) && random.IntN(4) == 0 {
					now = end // the first moment after a pause
				}
			}
			want := m.acquire(key, to, now)
			if want == "" && w.onTrial {
				trials[0]++
			}
			if want == "" && h.onTrial {
				trials[1]++
			}
			s, reason, wait := tryAs(l, key, to, now)
			if reason != want || (s != nil) != (want == "") || (wait > 0) != (want != "") {
				t.Fatalf("round %d, step %d: slot %v, reason %q, wait %v; want %q", round, step, s != nil, reason, wait, want)
			}
			if reason == ReasonPaused && wait > 2*maxPause {
				t.Fatalf("round %d, step %d: wait %v with a longest pause of %v", round, step, wait, maxPause)
			}
			reasons[reason]++
			if s != nil {
				underway = append(underway, attempt{key, to, s, now})
			}
			got := map[webhookKey]Failing{}
			for _, f := range l.failing(now) {
				got[webhookKey{f.Client, f.Scope}] = f
			}
			if want := m.failing(now); !maps.Equal(got, want) {
				t.Fatalf("round %d, step %d: failing are %v, want %v", round, step, got, want)
			}
		}
		for _, a := range underway {
			a.slot.release(now, success)
		}
		if n := len(l.clients) + len(l.hosts.inUse) + len(l.webhooks.inUse); n != 0 {
			t.Fatalf("round %d: %d clients, hosts and webhooks have attempts under way", round, n)
		}
	}
	for _, reason := range []Reason{"", ReasonBusy, ReasonPaused} {
		if reasons[reason] < 1000 {
			t.Errorf("only %d attempts with reason %q", reasons[reason], reason)
		}
	}
	if min(trials[0], trials[1]) < 100 {
		t.Errorf("only %d attempts at webhooks and hosts because they were set", trials)
	}
}

// pick returns one of some, each as often as its weight says.
func pick[T any](random *rand.Rand, of []T, weights []int) T {
	sum := 0
	for _, weight := range weights {
		sum += weight
	}
	n := random.IntN(sum)
	for i, weight := range weights {
		if n -= weight; n < 0 {
			return of[i]
		}
	}
	panic("unreachable")
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
				mustAcquire(t, l, "acme", "a:443", now).release(now, verdict{effectFailure, true, tt.pause})
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

// kinds are those of failures: of webhooks and of hosts.
var kinds = map[string]verdict{"webhooks": failure, "hosts": noConnection}

// TestResumeUnderWay: the end of a pause by the operator applies to a webhook or host that is being
// tried, too: it has all its slots from now on.
func TestResumeUnderWay(t *testing.T) {
	for name, v := range kinds {
		t.Run(name, func(t *testing.T) {
			l, now := limitTo(16, 4, time.Hour), time.Now()
			now = fail(t, l, "acme", "a:443", now, 5, v).Add(pause.First)
			tried := mustAcquire(t, l, "acme", "a:443", now)
			mustDefer(t, l, "acme", "a:443", now, ReasonBusy)
			key, _ := override("acme", "a:443")
			l.resume(key)
			for range 3 {
				defer mustAcquire(t, l, "acme", "a:443", now).release(now, success)
			}
			mustDefer(t, l, "acme", "a:443", now, ReasonBusy)
			tried.release(now, v)
			mustAcquire(t, l, "acme", "a:443", now).release(now, success)
		})
	}
}

// TestUnconnectedHost: a host to which nobody can connect is paused for all webhooks of the client
// there, and called by one at a time after that, until there's any response, be it a refusal. A
// client's hosts aren't another's.
func TestUnconnectedHost(t *testing.T) {
	l, now := limitTo(16, 4, time.Hour), time.Now()
	acquire := func(client, entity string) (*slot, Reason) {
		s, reason, _ := tryAs(l, webhookKey{client, webhookcfg.Entity(entity)}, setting{1, 1, "a:443"}, now)
		return s, reason
	}
	must := func(client, entity string) *slot {
		t.Helper()
		s, reason := acquire(client, entity)
		if s == nil {
			t.Fatalf("%s of %s was deferred: %s", entity, client, reason)
		}
		return s
	}
	for i := range 5 {
		s := must("acme", fmt.Sprint(i%3))
		now = now.Add(time.Second)
		s.release(now, noConnection)
	}
	for i := range 3 {
		if s, reason := acquire("acme", fmt.Sprint(i)); s != nil || reason != ReasonPaused {
			t.Errorf("webhook %d gets slot %v, reason %q", i, s != nil, reason)
		}
	}
	must("globex", "0").release(now, success)
	if got := l.failing(now); len(got) != 3 || got[0].Failures != 5 || !got[0].PausedUntil.Equal(now.Add(pause.First)) {
		t.Errorf("failing are %v", got)
	}

	now = now.Add(pause.First)
	tried := must("acme", "1")
	if s, reason := acquire("acme", "2"); s != nil || reason != ReasonBusy {
		t.Errorf("a second attempt gets slot %v, reason %q", s != nil, reason)
	}
	now = now.Add(time.Second)
	tried.release(now, failure)
	for i := range 3 {
		defer must("acme", fmt.Sprint(i)).release(now, success)
	}
	if got := l.failing(now); len(got) != 1 || got[0].Scope != webhookcfg.Entity("1") || got[0].Failures != 1 {
		t.Errorf("after a response, failing are %v", got)
	}
}

// TestNewWebhookAtAPausedHost: a webhook that the client sets while nobody can connect to its host
// gets one attempt at once, but doesn't get another one with each message.
func TestNewWebhookAtAPausedHost(t *testing.T) {
	l, now := limitTo(16, 4, time.Hour), time.Now()
	for range 12 {
		now = fail(t, l, "acme", "a:443", now, 1, noConnection).Add(time.Hour)
	}
	now = now.Add(-time.Hour) // the pause has just begun
	mustDefer(t, l, "acme", "a:443", now, ReasonPaused)
	key, to := webhookKey{"acme", webhookcfg.All()}, setting{1, 2, "a:443"}
	s, _, _ := tryAs(l, key, to, now)
	if s == nil {
		t.Fatal("no attempt")
	}
	s.release(now, noConnection)
	for range 200 { // the pause lasts longer
		now = now.Add(pause.First)
		if s, reason, _ := tryAs(l, key, to, now); s != nil || reason != ReasonPaused {
			t.Fatalf("a further attempt: slot %v, reason %q", s != nil, reason)
		}
	}
}

// TestSetUnderWay: what comes of an attempt that started before the webhook was set says nothing
// about the URL that it has now.
func TestSetUnderWay(t *testing.T) {
	l, now := limitTo(16, 16, time.Hour), time.Now()
	key := webhookKey{"acme", webhookcfg.All()}
	var old []*slot
	for range 6 {
		s, _, _ := tryAs(l, key, setting{2, 1, "a:443"}, now)
		old = append(old, s)
	}
	to := setting{1, 2, "b:443"}
	s, _, _ := tryAs(l, key, to, now)
	for _, s := range old {
		s.release(now, verdict{effectFailure, true, time.Minute})
	}
	if got := l.failing(now); len(got) != 0 {
		t.Errorf("failing are %v", got)
	}
	s.release(now, failure)
	if got := l.failing(now); len(got) != 1 || got[0].Failures != 1 || got[0].HostPort != "b:443" {
		t.Errorf("failing are %v", got)
	}
}

// TestIsBounded: a client with very many host names has no more attempts under way than
// others, fills no memory, and no attempt that is under way is forgotten.
func TestIsBounded(t *testing.T) {
	for name, v := range kinds {
		t.Run(name, func(t *testing.T) {
			l, now := limitTo(16, 4, time.Hour), time.Now()
			for range 4 {
				mustAcquire(t, l, "other", "a:443", now)
			}
			fail(t, l, "third", "a:443", now, 5, v)
			for i := range 2 * maxIdle {
				host := fmt.Sprint(i)
				mustAcquire(t, l, "acme", host, now).release(now, v)
				// A lookup is a use: the pauses of webhooks and hosts with messages are kept.
				mustDefer(t, l, "third", "a:443", now, ReasonPaused)
			}
			idle := 0 // hosts that respond aren't kept
			if v == noConnection {
				idle = maxIdle
			}
			if l.webhooks.idle.Len() != maxIdle || l.hosts.idle.Len() != idle || len(l.webhooks.inUse)+len(l.hosts.inUse) != 2 || len(l.clients) != 1 {
				t.Errorf("%d webhooks and %d hosts idle, %d and %d active, %d clients", l.webhooks.idle.Len(), l.hosts.idle.Len(), len(l.webhooks.inUse), len(l.hosts.inUse), len(l.clients))
			}
			mustDefer(t, l, "other", "a:443", now, ReasonBusy)

			for i := range 16 {
				mustAcquire(t, l, "acme", fmt.Sprint(i), now)
			}
			for i := range 1000 {
				mustDefer(t, l, "acme", fmt.Sprint("new", i), now, ReasonBusy)
			}
			if len(l.webhooks.inUse)+len(l.hosts.inUse) != 34 || max(l.webhooks.idle.Len(), l.hosts.idle.Len()) > maxIdle {
				t.Errorf("%d webhooks and %d hosts active, %d and %d idle", len(l.webhooks.inUse), len(l.hosts.inUse), l.webhooks.idle.Len(), l.hosts.idle.Len())
			}
		})
	}
}

// TestIsSharedFairly: a client with very many webhooks that fail, at as many hosts or at one, does
// not make the limiter forget the pause of another client's webhook or host.
func TestIsSharedFairly(t *testing.T) {
	for name, v := range kinds {
		t.Run(name, func(t *testing.T) {
			l, now := limitTo(16, 4, time.Hour), time.Now()
			now = fail(t, l, "acme", "a:443", now, 5, v)
			for i := range maxIdle + 1 {
				mustAcquire(t, l, "other", fmt.Sprint(i), now).release(now, v)
			}
			for i := range maxIdle + 1 {
				s, _, _ := tryAs(l, webhookKey{"other", webhookcfg.Entity(fmt.Sprint("e", i))}, setting{1, 1, "0"}, now)
				if s != nil {
					s.release(now, v)
				}
			}
			mustDefer(t, l, "acme", "a:443", now, ReasonPaused)
			if l.webhooks.idle.Len() > maxIdle || l.hosts.idle.Len() > maxIdle {
				t.Errorf("%d webhooks and %d hosts idle", l.webhooks.idle.Len(), l.hosts.idle.Len())
			}
		})
	}
}

// TestTestsAreSharedFairly: a client that tests many hosts doesn't end the interval between the
// tests of another client.
func TestTestsAreSharedFairly(t *testing.T) {
	l, now := limitTo(16, 4, time.Hour), time.Now()
	l.testers = ratelimit.New[string](maxTested+2, time.Second, 2) // which would end this much earlier
	test := func(client, hostport string) Result {
		key, to := override(client, hostport)
		s, r := l.acquire(key, to, now, true)
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
		t.Errorf("the host that was evicted gets %v", r)
	}
}

// TestHealthyAreNotKept: of webhooks that work and hosts that respond, nothing stays.
func TestHealthyAreNotKept(t *testing.T) {
	l, now := limitTo(16, 4, time.Hour), time.Now()
	for _, v := range kinds {
		fail(t, l, "acme", "a:443", now, 4, v)
		mustAcquire(t, l, "acme", "a:443", now).release(now, success)
	}
	mustAcquire(t, l, "acme", "b:443", now).release(now, verdict{effectSuccess, true, time.Minute})
	now = now.Add(time.Minute)
	mustAcquire(t, l, "acme", "b:443", now).release(now, success)
	if n := l.webhooks.idle.Len() + l.hosts.idle.Len() + len(l.webhooks.inUse) + len(l.hosts.inUse) + len(l.clients); n != 0 {
		t.Errorf("%d clients, hosts and webhooks are kept", n)
	}
}
