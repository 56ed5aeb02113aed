package outbox

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestTurns: if more clients have something to send than a process sends to at a time, they
// all get their turns, also if each enqueues more than its receiver takes, whether processes are
// told of commits or not, and whoever sets a webhook. A small client waits for one round.
func TestTurns(t *testing.T) {
	t.Parallel()
	const clients = 8
	seconds := sized(30, 60) // more than a round
	for name, during := range map[string]func(box *Outbox, client string){
		"found": func(*Outbox, string) {},
		"told":  func(box *Outbox, client string) { box.Committed(client) },
		"set": func(box *Outbox, client string) {
			if client == "c0" || client == "c1" { // again and again
				box.Changed(client)
			}
		},
	} {
		for processes := 1; processes <= 2; processes++ {
			if !*large && (name == "told") != (processes == 2) {
				continue
			}
			t.Run(fmt.Sprint(name, " ", processes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					for c := range clients {
						w.set(fmt.Sprint("c", c), "", w.host(c, &peer{takes: 400 * time.Millisecond}))
					}
					w.set("small", "", w.host(clients, &peer{}))
					var p *node
					for range processes {
						p = w.run(Options{Clients: 2 / processes}, deliver.Options{})
						defer p.stop()
					}
					sent := make(map[string]time.Duration)
					for tick := range seconds * 10 {
						for c := range clients {
							client := fmt.Sprint("c", c)
							for i := range 2 { // it takes one
								w.db.enqueue(client, fmt.Sprint("e", tick, "-", i), fmt.Sprint(client, "-", tick, "-", i))
							}
							during(p.box, client)
						}
						if tick == 100 {
							sent["small"] = time.Since(w.start)
							w.db.enqueue("small", "e", "small")
							during(p.box, "small")
						}
						time.Sleep(100 * time.Millisecond)
					}
					// Two of the clients send 10 a second.
					share := seconds * 10 * 2 / clients
					got := make(map[string]int)
					for _, a := range w.all() {
						got[a.id[:2]]++
					}
					for c := range clients {
						if n := got[fmt.Sprint("c", c)]; n < share/2 {
							t.Errorf("client %d got %d, and its share is %d", c, n, share)
						}
					}
					took := w.since(sent)
					t.Logf("the clients got %v of a share of %d; the small one waited %v", got, share, took)
					if round := clients / 2 * (slice + time.Second); len(took) == 0 || took[0] > round {
						t.Errorf("the small client's took %v, want %v", took, round)
					}
				})
			})
		}
	}
}
