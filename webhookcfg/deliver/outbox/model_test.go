package outbox

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

var histories = flag.Int("histories", 25, "how many random histories TestModel runs")

// TestModel runs random histories of several processes, and compares what arrives with what
// must: every committed notification ends delivered, given up or dropped, no process sends
// what another one has, and nobody is called who isn't in effect.
func TestModel(t *testing.T) {
	for seed := range *histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { history(t, uint64(seed)) })
		})
	}
}

func history(t *testing.T, seed uint64) {
	random, flaky := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	w := newWorld(t)
	opts := Options{
		Schedule: deliver.Schedule{5 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 15 * time.Minute},
		Clients:  2 + random.IntN(4), Order: Order(random.IntN(3)),
	}
	const clients, entities, hosts = 5, 4, 6
	down := make(map[string]bool)
	var addresses []string
	for h := range hosts {
		p := &peer{takes: time.Duration(1+random.IntN(300)) * time.Millisecond}
		address := w.host(h, p)
		addresses = append(addresses, address)
		p.respond = func(id string) int {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.attempts[id]++
			switch {
			case down[address]:
				return 503
			case h == 5 && flaky.IntN(3) == 0: // with the lock
				return 0
			}
			w.ok[id]++
			return 204
		}
	}
	set := func(c int) {
		entity := ""
		if random.IntN(2) == 0 {
			entity = fmt.Sprint("e", random.IntN(entities))
		}
		host := addresses[random.IntN(hosts)]
		if random.IntN(8) == 0 {
			host = "" // unset
		}
		w.set(fmt.Sprint("c", c), entity, host)
	}
	for c := range clients {
		w.set(fmt.Sprint("c", c), "", addresses[random.IntN(hosts)])
	}
	var nodes []*node
	node := func() *node {
		if len(nodes) == 0 {
			nodes = append(nodes, w.run(opts, deliver.Options{MaxPause: 2 * time.Minute}))
		}
		return nodes[random.IntN(len(nodes))]
	}
	kills := 0
	n := 0
	for range 60 {
		switch c := random.IntN(clients); random.IntN(10) {
		case 0:
			if len(nodes) < 3 {
				nodes = append(nodes, w.run(opts, deliver.Options{MaxPause: 2 * time.Minute}))
			}
		case 1:
			if len(nodes) > 0 {
				i := random.IntN(len(nodes))
				if random.IntN(2) == 0 {
					kills++
					nodes[i].kill()
				} else {
					nodes[i].stop()
				}
				nodes = append(nodes[:i], nodes[i+1:]...)
			}
		case 2:
			w.mu.Lock()
			address := addresses[random.IntN(hosts)]
			down[address] = !down[address]
			w.mu.Unlock()
		case 3:
			set(c)
			if random.IntN(4) > 0 {
				_ = node().box.Wake(t.Context(), fmt.Sprint("c", c))
			}
		default:
			for range 1 << random.IntN(6) {
				n++
				w.db.enqueue(fmt.Sprint("c", c), fmt.Sprint("e", random.IntN(entities)), fmt.Sprint("m", n))
			}
			if random.IntN(2) == 0 {
				node().box.Committed(fmt.Sprint("c", c))
			}
		}
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
	}
	w.mu.Lock()
	clear(down)
	w.mu.Unlock()
	node()
	for range 24 * 4 {
		time.Sleep(15 * time.Minute)
		if w.db.waitingNow() == 0 {
			break
		}
	}
	for _, p := range nodes {
		p.stop()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	twice := 0
	for _, m := range w.db.messages {
		switch {
		case m.state <= stateWaiting:
			t.Errorf("%s of %s is still waiting (state %d, attempts %d, due %v)", m.id, m.client, m.state, m.attempts, m.due)
		case m.state == stateDelivered && w.ok[m.id] == 0:
			t.Errorf("%s is marked delivered, and isn't", m.id)
		case m.state == stateGivenUp && w.attempts[m.id] < len(opts.Schedule)+1:
			t.Errorf("%s was given up after %d attempts", m.id, w.attempts[m.id])
		}
		if w.ok[m.id] > 1 {
			twice += w.ok[m.id] - 1
		}
	}
	if opts.Order == InOrder && kills == 0 {
		last := make(map[string]int64)
		number := make(map[string]*stored)
		for _, m := range w.db.messages {
			number[m.id] = m
		}
		for _, a := range w.arrivals {
			m := number[a.id]
			if key := m.client + "/" + m.entity; m.seq < last[key] {
				t.Errorf("%s of %s arrived after a later one", a.id, key)
			} else {
				last[key] = m.seq
			}
		}
	}
	if twice > kills*64 {
		t.Errorf("%d duplicates of %d kills", twice, kills)
	}
	if kills == 0 && twice > 0 {
		t.Errorf("%d duplicates without a kill", twice)
	}
}
