package cache_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
)

// scripted is a store that takes its time and fails as it is told, and remembers which
// webhook was in effect when. It runs on the clock of a synctest bubble.
type scripted struct {
	memory *store.Memory

	mu       sync.Mutex
	random   *rand.Rand
	weather  weather
	history  map[string][]span
	versions map[string]int
	hints    chan struct{}
}

// weather is how the store does for a while.
type weather struct {
	slow, slowPoll time.Duration // at most, before it does something and again after
	failRead       bool
	failPoll       int // how many polls of six fail at once
	hangPoll       int // how many polls of six hang until their context ends
	loseHints      bool
}

// span says since when a webhook is in effect, until the next one.
type span struct {
	hook string
	from time.Time
}

var errWeather = errors.New("bad weather")

func newScript(seed uint64) *scripted {
	s := &scripted{
		memory:   store.NewMemory(),
		random:   rand.New(rand.NewPCG(seed, 0)),
		history:  map[string][]span{},
		versions: map[string]int{},
		hints:    make(chan struct{}, 1),
	}
	for _, client := range scriptClients {
		s.remember(client)
	}
	return s
}

// Apply takes a while before it makes the change, and another one after.
func (s *scripted) Apply(ctx context.Context, c webhookcfg.Change) error {
	w := s.now()
	if err := s.sleep(ctx, w.slow); err != nil {
		return err
	}
	return errors.Join(s.apply(c), s.sleep(ctx, w.slow))
}

// apply makes a change and gives a hint.
func (s *scripted) apply(c webhookcfg.Change) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.memory.Apply(context.Background(), c); err != nil {
		return err
	}
	s.versions[c.Client]++
	s.remember(c.Client)
	if !s.weather.loseHints {
		select {
		case s.hints <- struct{}{}:
		default:
		}
	}
	return nil
}

// remember takes down what is in effect for a client. It wants mu held.
func (s *scripted) remember(client string) {
	for _, entity := range entities {
		hook, _ := s.memory.Resolve(context.Background(), client, entity)
		spans := s.history[key(client, entity)]
		if text := describe(hook); len(spans) == 0 || spans[len(spans)-1].hook != text {
			s.history[key(client, entity)] = append(spans, span{text, time.Now()})
		}
	}
}

// Resolve takes a while before it looks, and another one after.
func (s *scripted) Resolve(ctx context.Context, client, entity string) (webhookcfg.Webhook, error) {
	w := s.now()
	if err := s.sleep(ctx, w.slow); err != nil {
		return webhookcfg.Webhook{}, err
	}
	if w.failRead {
		return webhookcfg.Webhook{}, errWeather
	}
	hook, err := s.memory.Resolve(ctx, client, entity)
	return hook, errors.Join(err, s.sleep(ctx, w.slow))
}

func (s *scripted) now() weather {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.weather
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

// poll is what Changes and Versions have in common around their answer.
func (s *scripted) poll(ctx context.Context, answer func()) error {
	w, die := s.now(), s.below(6)
	if die < w.hangPoll {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := s.sleep(ctx, w.slowPoll); err != nil {
		return err
	}
	if die < w.hangPoll+w.failPoll {
		return errWeather
	}
	answer()
	return s.sleep(ctx, w.slowPoll)
}

// staleness returns how long before the given moment a webhook was replaced that was
// an answer; 0 if it was in effect then or later. It wants the answer to be one that
// was ever right.
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
		return setAll(client, n)
	case 1:
		return unset(client, entity, n)
	case 2:
		return unsetAll(client, n)
	default:
		return set(client, entity, n)
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

// scriptClients are enough for most to be left alone for a while.
var scriptClients = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}

// What the script can be asked, beside what a store must.
type (
	scriptedFeed     struct{ *scripted }
	scriptedVersions struct{ *scripted }
	scriptedPlain    struct{ *scripted }
)

// Changes is that of the Memory, but for an unfounded Reset now and then.
func (s scriptedFeed) Changes(ctx context.Context, since string) (changes cache.Changes, err error) {
	err = s.poll(ctx, func() { changes, err = s.memory.Changes(ctx, since) })
	if err == nil && s.chance(50) {
		changes.Clients, changes.Reset = nil, true
	}
	return changes, err
}

func (s scriptedFeed) Notify(context.Context) <-chan struct{} { return s.hints }

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
