package deliver

import (
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/ratelimit"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver/internal/pause"
)

const (
	defaultPerClient = 16
	defaultPerHost   = 4

	// maxIdle is how many webhooks without attempts we remember, for their failures and pauses, and
	// as many hosts. Beyond that we forget one of the client that has the most. If that one fails,
	// it costs five more attempts.
	maxIdle = 10_000

	// Messages that get no slot come back after minWait or more, so that a fast receiver's
	// backlog doesn't keep the queue busy, and not all at once. The last one that waits for the
	// end of a pause comes at most maxSpread after it.
	minWait   = 100 * time.Millisecond
	maxSpread = time.Minute
)

// limiter keeps a client, a host or a webhook from taking all workers of a queue. It bounds the
// attempts under way, and defers those for paused webhooks. It never waits. It is safe for
// concurrent use.
type limiter struct {
	limits   func(client string) (perClient, perHost int)
	maxPause time.Duration
	seed     maphash.Seed // tells clients and URLs apart

	mu       sync.Mutex
	clients  map[string]*slots // with attempts under way
	hosts    memory[hostKey, host]
	webhooks memory[webhookKey, webhook]
	tested   *ratelimit.Limiter[hostKey]
	testers  *ratelimit.Limiter[string] // clients
}

// newLimiter returns a limiter with the limits of complete options.
func newLimiter(o *Options) *limiter {
	seed := maphash.MakeSeed()
	ofHost := func(k hostKey) uint64 { return maphash.String(seed, k.client) }
	ofWebhook := func(k webhookKey) uint64 { return maphash.String(seed, k.client) }
	return &limiter{
		limits:   o.limits,
		maxPause: o.MaxPause,
		seed:     seed,
		clients:  make(map[string]*slots),
		hosts:    newMemory[hostKey, host](ofHost),
		webhooks: newMemory[webhookKey, webhook](ofWebhook),
		tested:   ratelimit.NewShared(1, testInterval, maxTested, ofHost),
		testers:  ratelimit.New[string](maxTests, time.Second, maxTested),
	}
}

// setting returns what we remember of a setting.
func (l *limiter) setting(hook webhookcfg.Webhook) setting {
	return setting{hook.Since.UnixMicro(), targetOf(hook, l.seed), hostport(hook.URL)}
}

// slots are those of a client, a host or a webhook.
type slots struct {
	taken   int
	average time.Duration // that one is taken; zero: unknown
	freed   time.Time     // when one last became free, or the first one was taken
}

func (s *slots) take(now time.Time) {
	if s.taken == 0 {
		s.freed = now
	}
	s.taken++
}

func (s *slots) free(start, now time.Time) {
	s.taken--
	s.average += (now.Sub(start) - s.average) / 8
	s.freed = now
}

// wait returns roughly how long it takes until a slot is free. The average alone isn't enough,
// because it doesn't change while a receiver hangs.
func (s *slots) wait(now time.Time) time.Duration {
	return max(s.average, now.Sub(s.freed)) / time.Duration(max(s.taken, 1))
}

// slot permits one attempt, until its release.
type slot struct {
	limiter *limiter
	key     webhookKey
	setting setting
	client  *slots
	host    *host
	webhook *webhook
	start   time.Time
}

// acquire returns a slot for an attempt at a webhook, as it's set. If it's nil, the result says why,
// and its Wait is the rest of the pause, or roughly how long it takes until a slot is free. A test
// gets a slot even in a pause after failures.
func (l *limiter) acquire(key webhookKey, to setting, now time.Time, isTest bool) (*slot, Result) {
	perClient, perHost := l.limits(key.client)
	l.mu.Lock()
	defer l.mu.Unlock()
	at := hostKey{key.client, to.hostport}
	if isTest {
		if wait := max(l.tested.Wait(at, now), l.testers.Wait(key.client, now)); wait > 0 {
			return nil, deferred(ReasonBusy, wait, errTested)
		}
	}
	c, h, w := l.client(key.client), l.hosts.get(at), new(webhook)
	if !key.isTried() {
		w = l.webhook(key, to, h, now)
	}
	end := latest(w.End(), h.End())
	if isTest {
		end = w.Asked
	}
	switch {
	case now.Before(end):
		return nil, deferred(ReasonPaused, end.Sub(now), errPaused)
	case w.IsFailing() && w.taken > 0:
		return nil, deferred(ReasonBusy, w.wait(now), errBusy)
	case h.IsFailing() && h.taken > 0, h.taken >= perHost:
		return nil, deferred(ReasonBusy, h.wait(now), errBusy)
	case c.taken >= perClient:
		return nil, deferred(ReasonBusy, c.wait(now), errBusy)
	}
	if isTest {
		l.tested.Take(at, now)
		l.testers.Take(key.client, now)
	}
	l.clients[key.client] = c
	l.hosts.use(at, h)
	if !key.isTried() {
		l.webhooks.use(key, w)
	}
	c.take(now)
	h.take(now)
	w.take(now)
	return &slot{limiter: l, key: key, setting: to, client: c, host: h, webhook: w, start: now}, Result{}
}

var (
	errBusy   = errors.New("deliver: as many attempts as allowed are under way")
	errPaused = errors.New("deliver: webhook is paused, or nobody can connect to its host")
)

// release ends the attempt. It must be called exactly once.
func (s *slot) release(now time.Time, v verdict) {
	l, c, h, w := s.limiter, s.client, s.host, s.webhook
	l.mu.Lock()
	defer l.mu.Unlock()
	c.free(s.start, now)
	h.free(s.start, now)
	w.free(s.start, now)
	h.judge(v, s.start, now, l.maxPause)
	if w.setting.isSameURL(s.setting) { // otherwise it was set meanwhile
		w.judge(v, s.start, now, l.maxPause)
	}
	if c.taken == 0 {
		delete(l.clients, s.key.client)
	}
	if h.taken == 0 {
		l.hosts.rest(hostKey{s.key.client, s.setting.hostport}, h, h.IsUnwell(now))
	}
	if w.taken == 0 && !s.key.isTried() {
		l.webhooks.rest(s.key, w, w.IsUnwell(now) || l.hostOf(s.key, w).IsUnwell(now))
	}
}

// client returns the slots of a client. New ones are not kept yet.
func (l *limiter) client(id string) *slots {
	if c := l.clients[id]; c != nil {
		return c
	}
	return new(slots)
}

// webhook returns the webhook with a key, and takes in its setting. A host to which nobody can
// connect gets an attempt, too, if the webhook was set. We know about that by what we remember, so
// from then on we remember the webhook, even if it has to wait.
func (l *limiter) webhook(key webhookKey, to setting, h *host, now time.Time) *webhook {
	w := l.webhooks.get(key)
	if w.set(to, now) {
		h.Trial(now)
		if h.IsUnwell(now) {
			l.webhooks.keep(key, w)
		}
	}
	return w
}

// hostOf returns the host of a webhook.
func (l *limiter) hostOf(key webhookKey, w *webhook) *host {
	return l.hosts.peek(hostKey{key.client, w.setting.hostport})
}

// stagger returns a random wait from the given one to twice that, so that messages that were
// deferred together don't come back together.
func stagger(wait time.Duration) time.Duration {
	wait = max(wait, minWait)
	return wait + rand.N(min(wait, maxSpread))
}

// failing returns the webhooks with failures or a pause, of their own or of their host.
func (l *limiter) failing(now time.Time) (all []Failing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for key, w := range l.webhooks.all() {
		h := l.hostOf(key, w)
		if !w.IsUnwell(now) && !h.IsUnwell(now) {
			continue
		}
		all = append(all, Failing{
			Client: key.client, Scope: key.scope, HostPort: w.setting.hostport,
			Failures: max(w.Failures, h.Failures), PausedUntil: endAfter(now, w, h),
		})
	}
	return all
}

// endAfter returns the end of the pause of a webhook and of its host, or zero if there's none.
func endAfter(now time.Time, w *webhook, h *host) time.Time {
	if end := latest(w.End(), h.End()); end.After(now) {
		return end
	}
	return time.Time{}
}

// pausedUntil returns the end of the pause of a webhook, or zero if there's none. One that was set since
// gets an attempt at once.
func (l *limiter) pausedUntil(key webhookKey, to setting, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.webhooks.peek(key)
	if w.setting != to {
		return time.Time{}
	}
	return endAfter(now, w, l.hostOf(key, w))
}

// resume forgets the failures and the pauses of a webhook and of its host.
func (l *limiter) resume(key webhookKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.webhooks.peek(key)
	l.hostOf(key, w).State = pause.State{}
	w.State = pause.State{}
}
