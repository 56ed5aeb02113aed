package cache_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// scripted is a store with simulated latency and faults, which records when which
// webhook was in effect. It runs on the clock of a synctest bubble.
type scripted struct {
	memory *store.Memory

	mu            sync.Mutex
	random        *rand.Rand
	conditions    conditions
	history       map[string][]span
	versions      map[string]int
	notifications chan struct{}
}

// conditions are the latency and the faults of the store for a while.
type conditions struct {
	slow, slowPoll    time.Duration // at most, before an operation and again after it
	failRead          bool
	failPoll          int // how many polls of six fail at once
	hangPoll          int // how many polls of six hang until their context ends
	loseNotifications bool
}

// span is a period, until the next one, in which a webhook was in effect.
type span struct {
	hook string
	from time.Time
}

// entities are few, so that a test can look at all of them.
var entities = []string{"e1", "e2", "e3", "e4"}

func key(client, entity string) string { return client + "/" + entity }

var errFault = errors.New("simulated fault")

func newScript(seed uint64) *scripted {
	s := &scripted{
		memory:        store.NewMemory(),
		random:        rand.New(rand.NewPCG(seed, 0)),
		history:       map[string][]span{},
		versions:      map[string]int{},
		notifications: make(chan struct{}, 1),
	}
	for _, client := range scriptClients {
		s.remember(client)
	}
	return s
}

// Apply sleeps before and after it makes the change.
func (s *scripted) Apply(ctx context.Context, c webhookcfg.Change) error {
	w := s.now()
	if err := s.sleep(ctx, w.slow); err != nil {
		return err
	}
	return errors.Join(s.apply(c), s.sleep(ctx, w.slow))
}

// apply makes a change and sends a notification.
func (s *scripted) apply(c webhookcfg.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.memory.Apply(context.Background(), c); err != nil {
		return err
	}
	s.versions[c.Client]++
	s.remember(c.Client)
	if !s.conditions.loseNotifications {
		select {
		case s.notifications <- struct{}{}:
		default:
		}
	}
	return nil
}

// remember records what is in effect for a client. The caller holds mu.
func (s *scripted) remember(client string) {
	for _, entity := range entities {
		hook, _ := s.memory.Resolve(context.Background(), client, entity)
		spans := s.history[key(client, entity)]
		if text := hooktest.Describe(hook); len(spans) == 0 || spans[len(spans)-1].hook != text {
			s.history[key(client, entity)] = append(spans, span{text, time.Now()})
		}
	}
}

// Resolve sleeps before and after it reads.
func (s *scripted) Resolve(ctx context.Context, client, entity string) (hook webhookcfg.Webhook, err error) {
	err = s.read(ctx, func() (err error) {
		hook, err = s.memory.Resolve(ctx, client, entity)
		return err
	})
	return hook, err
}

// read simulates the latency and the faults of reads around their work.
func (s *scripted) read(ctx context.Context, work func() error) error {
	w := s.now()
	if err := s.sleep(ctx, w.slow); err != nil {
		return err
	}
	if w.failRead {
		return errFault
	}
	return errors.Join(work(), s.sleep(ctx, w.slow))
}

func (s *scripted) now() conditions {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conditions
}

// sleep sleeps for a random part of the time.
func (s *scripted) sleep(ctx context.Context, most time.Duration) error {
	if most == 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(s.draw(most)):
		return nil
	}
}

func (s *scripted) draw(most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.random.Int64N(int64(most)))
}

func (s *scripted) chance(oneIn int) bool { return s.below(oneIn) == 0 }

func (s *scripted) below(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// poll simulates the latency and the faults of Changes and Versions around their work.
func (s *scripted) poll(ctx context.Context, work func()) error {
	w, die := s.now(), s.below(6)
	if die < w.hangPoll {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := s.sleep(ctx, w.slowPoll); err != nil {
		return err
	}
	if die < w.hangPoll+w.failPoll {
		return errFault
	}
	work()
	return s.sleep(ctx, w.slowPoll)
}

// staleness returns how long before the given time a webhook was replaced; zero if it was
// in effect then or later. It reports whether the webhook was ever in effect.
func (s *scripted) staleness(client, entity, hook string, before time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	spans := s.history[key(client, entity)]
	for n := len(spans) - 1; n >= 0; n-- {
		if spans[n].hook != hook {
			continue
		}
		if n == len(spans)-1 {
			return 0, true
		}
		return max(0, before.Sub(spans[n+1].from)), true
	}
	return 0, false
}

// change is the nth random change.
func (s *scripted) change(n int) webhookcfg.Change {
	s.mu.Lock()
	defer s.mu.Unlock()
	client, entity := s.name()
	switch s.random.IntN(8) {
	case 0:
		return hooktest.SetAll(client, n)
	case 1:
		return hooktest.Unset(client, entity, n)
	case 2:
		return hooktest.UnsetAll(client, n)
	default:
		return hooktest.Set(client, entity, n)
	}
}

func (s *scripted) anyName() (client, entity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name()
}

func (s *scripted) name() (client, entity string) {
	return scriptClients[s.random.IntN(len(scriptClients))], entities[s.random.IntN(len(entities))]
}

// scriptClients are so many that most are unchanged for a while.
var scriptClients = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}

// The optional interfaces of the store.
type (
	scriptedFeed     struct{ *scripted }
	scriptedVersions struct{ *scripted }
	scriptedPlain    struct{ *scripted }

	// scriptedPages adds a Lister. Pages are so small that clients grow too large and become
	// small again.
	scriptedPages struct {
		webhookcfg.Store
		script *scripted
	}
	scriptedFeedPages struct {
		scriptedPages
		cache.Feed
		cache.Notifier
	}
	scriptedVersionsPages struct {
		scriptedPages
		cache.Versioner
	}
)

// List sleeps before and after it reads.
func (s scriptedPages) List(ctx context.Context, client, after string, _ int) (page webhookcfg.Page, err error) {
	err = s.script.read(ctx, func() (err error) {
		page, err = s.script.memory.List(ctx, client, after, 3)
		return err
	})
	return page, err
}

// Changes calls that of the Memory, with an additional Reset now and then.
func (s scriptedFeed) Changes(ctx context.Context, since string) (changes cache.Changes, err error) {
	err = s.poll(ctx, func() { changes, err = s.memory.Changes(ctx, since) })
	if err == nil && s.chance(50) {
		changes.Clients, changes.Reset = nil, true
	}
	return changes, err
}

func (s scriptedFeed) Notify(context.Context) <-chan struct{} { return s.notifications }

func (s scriptedVersions) Versions(ctx context.Context, clients []string) (versions []string, err error) {
	err = s.poll(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, client := range clients {
			versions = append(versions, strconv.Itoa(s.versions[client]))
		}
	})
	return versions, err
}
