package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/cache"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// copied is a service whose sender keeps a copy of the store. It runs in virtual time.
type copied struct {
	memory   *store.Memory
	clients  []string
	entities int // of each client
	random   *rand.Rand
}

const (
	copyBytes    = 128 << 20
	copyResolves = 1000 // per second
	copyChanges  = 10   // per second
)

func newCopied(clients int) *copied {
	c := &copied{memory: store.NewMemory(), entities: 100, random: rand.New(rand.NewPCG(1, 2))}
	for n := range clients {
		c.clients = append(c.clients, fmt.Sprintf("client-%06d", n))
		c.apply(webhookcfg.SetChange(c.clients[n], webhookcfg.All(), egress.NewURL(nthURL(n))))
	}
	for n := range clients / 100 {
		for e := range c.entities {
			c.set(n, e)
		}
	}
	return c
}

// change makes a change. Half of the time it's for any client, and half of the time for one
// with overrides.
func (c *copied) change() {
	if n := c.random.IntN(len(c.clients)); c.random.IntN(2) == 0 {
		c.apply(webhookcfg.SetChange(c.clients[n], webhookcfg.All(), egress.NewURL(nthURL(n))))
		return
	}
	c.set(c.random.IntN(len(c.clients)/100), c.random.IntN(c.entities))
}

func (c *copied) set(client, entity int) {
	n := client*c.entities + entity
	c.apply(webhookcfg.SetChange(c.clients[client], webhookcfg.Entity(nthEntity(n)), egress.NewURL(nthURL(n))))
}

func (c *copied) apply(change webhookcfg.Change) {
	if err := c.memory.Apply(context.Background(), change); err != nil {
		panic(err)
	}
}

// hits returns a copy's hit ratio over ten minutes, and its stats at the end.
func (c *copied) hits(t *testing.T) (ratio float64, stats cache.Stats) {
	synctest.Test(t, func(t *testing.T) {
		local, err := cache.New(c.memory, &cache.Options{MaxBytes: copyBytes})
		if err != nil {
			t.Fatal(err)
		}
		defer local.Close()
		if err := local.Warm(t.Context(), c.clients); err != nil {
			t.Fatal(err)
		}
		for n := range 600 * copyResolves {
			time.Sleep(time.Second / copyResolves)
			if n%(copyResolves/copyChanges) == 0 {
				c.change()
			}
			entity := c.random.IntN(len(c.clients) * c.entities)
			if _, err := local.Resolve(t.Context(), c.clients[entity/c.entities], nthEntity(entity)); err != nil {
				t.Fatal(err)
			}
		}
		stats = local.Stats()
	})
	return float64(stats.Hits) / float64(stats.Hits+stats.Misses), stats
}

// copies measures how many resolves a sender's copy can serve without the store.
func (s settings) copies(t *testing.T, r *report) {
	clients := s.records / 10
	c := newCopied(clients)
	r.section("A sender's copy", fmt.Sprintf(`Ten minutes of virtual time with a sender whose [cache](../../../store/cache) was warmed. There
are %s clients with %s entities, and 1 %% of the clients have an override for
each entity. Every second, the sender resolves %d random entities, and there are %d changes,
about half of them by clients with overrides. The memory is the cache's own count.`,
		grouped(clients), grouped(clients*c.entities), copyResolves, copyChanges))
	ratio, stats := c.hits(t)
	r.table([]string{"hit ratio", "budget", "memory", "reads of the store"},
		[]string{fmt.Sprintf("%.4f", ratio), "≥ 0.98 in 128 MiB", fmt.Sprintf("%d MiB", stats.Bytes>>20), grouped(int(stats.Reads))})
}
