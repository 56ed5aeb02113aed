package oplog_test

import (
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
)

// model is the simplest state machine: the last change of each entry.
type model struct {
	mu      sync.Mutex
	clients map[string]*settings
}

type settings struct {
	base      *webhookcfg.Change
	overrides map[string]webhookcfg.Change
}

func newModel() *model { return &model{clients: map[string]*settings{}} }

func (m *model) ApplyAll(changes []webhookcfg.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range changes {
		m.apply(c)
	}
}

func (m *model) apply(c webhookcfg.Change) {
	s := m.clients[c.Client]
	if s == nil {
		s = &settings{overrides: map[string]webhookcfg.Change{}}
		m.clients[c.Client] = s
	}
	isSet, entity := !c.URL.IsZero(), c.Scope.Entity()
	switch {
	case c.Scope.IsAll() && isSet:
		s.base, s.overrides = &c, map[string]webhookcfg.Change{}
	case c.Scope.IsAll():
		delete(m.clients, c.Client)
	case isSet || s.base != nil:
		s.overrides[entity] = c
	default:
		delete(s.overrides, entity)
	}
}

func (m *model) Len() int {
	changes, _ := m.Live()
	return changes
}

// Live doesn't sort, because a log calls it after each batch.
func (m *model) Live() (changes int, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	count := func(c webhookcfg.Change) {
		changes++
		bytes += int64(len(c.Client) + len(c.Scope.Entity()) + len(c.URL.Reveal()))
	}
	for _, s := range m.clients {
		if s.base != nil {
			count(*s.base)
		}
		for _, c := range s.overrides {
			count(c)
		}
	}
	return changes, bytes
}

func (m *model) Snapshot() iter.Seq[webhookcfg.Change] {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []webhookcfg.Change
	for _, name := range slices.Sorted(maps.Keys(m.clients)) {
		s := m.clients[name]
		if s.base != nil {
			all = append(all, *s.base)
		}
		for _, entity := range slices.Sorted(maps.Keys(s.overrides)) {
			all = append(all, s.overrides[entity])
		}
	}
	return slices.Values(all)
}

// String is different for different states.
func (m *model) String() string {
	var b strings.Builder
	for c := range m.Snapshot() {
		b.WriteString(describe(c))
		b.WriteByte('\n')
	}
	return b.String()
}

// describe returns all fields of a change.
func describe(c webhookcfg.Change) string {
	return strings.Join([]string{c.Client, c.Scope.String(), c.URL.Reveal(), c.Time.Format(time.RFC3339Nano)}, " ")
}
