package outbox

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

var histories = flag.Int("histories", 3, "how many random histories TestModel runs")

// TestModel runs random histories of several processes, with notifications that are committed
// late, sent again or erased, and databases that fail or hang. It compares what arrives with what
// must: every committed notification ends delivered, given up or dropped, and dropped only if it
// had no webhook. An attempt is made by the process that has the client, at the webhook that is
// in effect, within the limits, and in the order of the entity.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range *histories {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { history(t, uint64(seed)) })
		})
	}
}

func history(t *testing.T, seed uint64) {
	random, flaky := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	faults := rand.New(rand.NewPCG(seed, 3))
	w := newWorld(t)
	opts := Options{
		Schedule: deliver.Schedule{5 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 15 * time.Minute},
		Clients:  2 + random.IntN(4), Order: Order(random.IntN(3)),
	}
	const clients, entities, hosts = 5, 4, 6
	down := make(map[string]bool)
	owners := make(map[string][2]string) // client and entity of each notification
	busy := make(map[string]int)         // requests under way, by client and receiver
	most := 0
	var addresses []string
	for h := range hosts {
		p := &peer{takes: time.Duration(1+random.IntN(300)) * time.Millisecond}
		address := w.host(h, p)
		addresses = append(addresses, address)
		p.respond = func(id string) int {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.attempts[id]++
			if h != 5 { // there, the sender gives up at the same moment as the receiver
				key := owners[id][0] + " " + address
				busy[key]++
				most = max(most, busy[key])
				time.AfterFunc(p.takes-time.Microsecond, func() { w.mu.Lock(); busy[key]--; w.mu.Unlock() })
			}
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
	effect := make(map[[2]string][]effective) // for each entity
	settle := func(c int) {                   // with the lock
		for e := range entities {
			at := [2]string{fmt.Sprint("c", c), fmt.Sprint("e", e)}
			hook, ok := w.webhooks[at[0]+"/"+at[1]]
			if !ok {
				hook = w.webhooks[at[0]+"/"]
			}
			address := strings.TrimSuffix(strings.TrimPrefix(hook.URL.Reveal(), "http://"), "/")
			effect[at] = append(effect[at], effective{time.Now(), address})
		}
	}
	w.starts = func(p *node, id, address string) {
		w.mu.Lock()
		of := owners[id]
		history := effect[of]
		w.mu.Unlock()
		last := history[len(history)-1]
		isInEffect := last.address == address
		for i := len(history) - 1; i > 0 && history[i].at.Equal(time.Now()); i-- {
			isInEffect = isInEffect || history[i-1].address == address // until this moment
		}
		if !isInEffect {
			t.Errorf("%s of %v was sent to %s while %q was in effect", id, of, address, last.address)
		}
		p.box.mu.Lock()
		me := p.box.process.id
		p.box.mu.Unlock()
		if owner := w.db.ownerOf(of[0]); owner != me {
			t.Errorf("%s of %v was sent by %d while %d has the client", id, of, me, owner)
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
		w.mu.Lock()
		settle(c)
		w.mu.Unlock()
	}
	for c := range clients {
		w.set(fmt.Sprint("c", c), "", addresses[random.IntN(hosts)])
		settle(c)
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
	again, late := make(map[string]int), make(map[string]bool)
	orphans := make(map[[2]string]time.Time) // until when an entity's retries were due that were erased
	enqueue := func(c int, commit func(client, entity, id string)) {
		n++
		client, entity, id := fmt.Sprint("c", c), fmt.Sprint("e", random.IntN(entities)), fmt.Sprint("m", n)
		w.mu.Lock()
		owners[id] = [2]string{client, entity}
		w.mu.Unlock()
		commit(client, entity, id)
	}
	for range 60 {
		switch c := random.IntN(clients); random.IntN(15) {
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
				node().box.Changed(fmt.Sprint("c", c))
			}
		case 4:
			for _, id := range w.db.sendAgain(fmt.Sprint("c", c), func() bool { return random.IntN(4) == 0 }) {
				again[id]++
			}
		case 5:
			of := [2]string{fmt.Sprint("c", c), fmt.Sprint("e", random.IntN(entities))}
			if due := w.db.erase(of[0], of[1]); due.After(orphans[of]) {
				orphans[of] = due
			}
		case 6: // others pass it before it's committed
			enqueue(c, func(client, entity, id string) {
				late[id] = true
				w.db.mu.Lock()
				seq := w.db.number()
				w.db.mu.Unlock()
				time.AfterFunc(time.Duration(random.IntN(10_000))*time.Millisecond+time.Microsecond, func() {
					w.db.mu.Lock()
					defer w.db.mu.Unlock()
					w.db.commit(seq, client, entity, id)
				})
			})
		case 7, 8:
			if len(nodes) > 0 { // others take over if it takes long
				kills++
				p := nodes[random.IntN(len(nodes))]
				fails, hangs := random.IntN(2) == 0, random.IntN(3) == 0
				p.hang(hangs)
				w.db.mu.Lock()
				if p.session.fail = nil; !hangs {
					p.session.fail = func(string) error {
						if fails || faults.IntN(2) == 0 { // with the lock of the database
							return errCut
						}
						return nil
					}
				}
				w.db.mu.Unlock()
				time.AfterFunc(time.Duration(random.IntN(8000)+1)*time.Millisecond, func() {
					p.hang(false)
					w.db.mu.Lock()
					p.session.fail = nil
					w.db.mu.Unlock()
				})
			}
		default:
			for range 1 << random.IntN(6) {
				enqueue(c, w.db.enqueue)
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
		case m.state == stateDropped && (m.reason == "" || !wasUnset(effect[owners[m.id]], m.enqueued)):
			t.Errorf("%s of %v was dropped because of %q", m.id, owners[m.id], m.reason)
		case m.state == stateGivenUp && w.attempts[m.id] < len(opts.Schedule)+1:
			t.Errorf("%s was given up after %d attempts", m.id, w.attempts[m.id])
		}
		twice += max(w.ok[m.id]-1-again[m.id], 0)
	}
	if most > 4*(1+kills) {
		t.Errorf("%d requests of a client at a time at one receiver, and %d processes lost their clients", most, kills)
	}
	if opts.Order != AnyOrder {
		last, seen := make(map[[2]string]int64), make(map[string]bool)
		number := make(map[string]*stored)
		for _, m := range w.db.messages {
			number[m.id] = m
		}
		for _, a := range w.arrivals {
			m := number[a.id]
			if m == nil || late[a.id] || again[a.id] > 0 || seen[a.id] && (opts.Order == EachEntity || kills > 0) {
				continue
			}
			// The line that knows of a retry parks what comes after it, and the next one can't know what
			// waits if the retry was erased meanwhile. Erase makes a process forget the client, too.
			if opts.Order == InOrder && !m.enqueued.After(orphans[owners[a.id]]) {
				continue
			}
			// Without a word of a change, or if it's lost, others may go ahead at the new receiver.
			changed := slices.ContainsFunc(effect[owners[a.id]], func(e effective) bool {
				return !e.at.Before(m.enqueued.Add(-trust)) && e.at.Sub(w.start) <= a.at
			})
			if seen[a.id] = true; m.seq < last[owners[a.id]] && !changed {
				t.Errorf("%s of %v arrived after a later one", a.id, owners[a.id])
			}
			last[owners[a.id]] = max(last[owners[a.id]], m.seq)
		}
	}
	if twice > kills*64 {
		t.Errorf("%d duplicates of %d kills", twice, kills)
	}
	if kills == 0 && twice > 0 {
		t.Errorf("%d duplicates without a kill", twice)
	}
}

// effective is a webhook that is in effect for an entity from a time on.
type effective struct {
	at      time.Time
	address string // "" if there's none
}

// wasUnset reports whether an entity had no webhook at some time after another.
func wasUnset(history []effective, after time.Time) bool {
	for i, e := range history {
		if e.address == "" && (i == len(history)-1 || history[i+1].at.After(after)) {
			return true
		}
	}
	return false
}
