package store_test

import (
	"context"
	"maps"
	"strings"

	"example.com/go-webhookcfg/internal/hooktest"
	"example.com/go-webhookcfg/webhookcfg"
)

// The clients and entities of the tests of the file store, few enough to check all.
var (
	clients  = []string{"acme", "other"}
	entities = []string{"e1", "e2", "e3", "e4"}
)

// model holds what Resolve must return for every client and entity, as text. It has no
// bases and overrides: set-all is a loop.
type model map[string]string

func (m model) clone() model { return maps.Clone(m) }

func key(client, entity string) string { return client + "/" + entity }

// apply makes a change.
func (m model) apply(c webhookcfg.Change) {
	if !c.Scope.IsAll() {
		m.one(c, c.Scope.Entity(), webhookcfg.SourceOverride)
		return
	}
	for _, entity := range entities {
		m.one(c, entity, webhookcfg.SourceBase)
	}
	// The webhook of entities without an entry, which unset depends on.
	m.one(c, "", webhookcfg.SourceBase)
}

func (m model) one(c webhookcfg.Change, entity string, source webhookcfg.Source) {
	switch {
	case !c.URL.IsZero():
	case source == webhookcfg.SourceBase || m[key(c.Client, "")] == "":
		delete(m, key(c.Client, entity))
		return
	default:
		source = webhookcfg.SourceOff
	}
	m[key(c.Client, entity)] = hooktest.Describe(webhookcfg.Webhook{URL: c.URL, Source: source, Since: c.Time})
}

// String returns the state of all clients.
func (m model) String() string { return m.show(clients...) }

func (m model) show(clients ...string) string {
	return describeAll(clients, func(client, entity string) string { return m[key(client, entity)] })
}

func describeAll(clients []string, resolve func(client, entity string) string) string {
	var b strings.Builder
	for _, client := range clients {
		for _, entity := range entities {
			b.WriteString(client + "/" + entity + ": " + resolve(client, entity) + "\n")
		}
	}
	return b.String()
}

// observe returns the state of clients in a store.
func observe(s webhookcfg.Store, clients ...string) string {
	return describeAll(clients, func(client, entity string) string {
		w, err := s.Resolve(context.Background(), client, entity)
		if err != nil {
			return err.Error()
		}
		return hooktest.Describe(w)
	})
}
