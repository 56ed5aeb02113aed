package service_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

var rounds = flag.Int("rounds", 10, "how many times TestKill kills the program over each database")

const (
	modules = 20
	callers = 4
	// completions is how many notifications can have been delivered, but not written down,
	// when the process is killed: those of a tenth of a second.
	completions = 100
	// drainEvery is after how many rounds the queue is emptied.
	drainEvery = 100
)

// TestKill kills the program at random moments, while it acknowledges changes and delivers
// notifications to receivers of all kinds. All acknowledged changes must arrive. With each
// kill, only as many may arrive twice as were under way, plus those that were just delivered.
func TestKill(t *testing.T) {
	onEachEngine(t, func(t *testing.T, store string) {
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, path, store)
		l := newLedger(t, p.signingKey())
		p.set("", l.serve(accepting))
		kinds := []behaviour{accepting, failingTwice, throttling, resetting, slow}
		for i, kind := range kinds {
			target := l.serve(kind)
			for n := i; n < modules; n += len(kinds) {
				p.mustChange(l, moduleName(n), 1)
				p.set(moduleName(n), target)
			}
		}
		for n := 1; n <= *rounds; n++ {
			killAfter(p, l, 1+rand.IntN(150))
			p = start(t, path, store)
			if n%drainEvery == 0 || n == *rounds {
				expectDelivered(t, p, l, n)
			}
		}
		p.stop()
		p.wait()
	})
}

func moduleName(n int) string { return fmt.Sprint("e", n) }

// killAfter changes modules concurrently, and kills the program after n acknowledgements.
func killAfter(p *program, l *ledger, n int) {
	acknowledged, failed := make(chan struct{}), make(chan error, callers)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for {
				module := moduleName(rand.IntN(modules))
				version, err := p.change(module)
				if err != nil {
					failed <- err
					return
				}
				l.acknowledge(module, version)
				acknowledged <- struct{}{}
			}
		})
	}
	for range n {
		select {
		case <-acknowledged:
		case err := <-failed:
			p.kill()
			p.t.Fatalf("a change failed before the program was killed: %v\n%s", err, p.stderr)
		}
	}
	p.kill()
	go func() {
		for range acknowledged {
		}
	}()
	all.Wait()
	close(acknowledged)
}

// expectDelivered waits until the queue is empty, after this many kills.
func expectDelivered(t *testing.T, p *program, l *ledger, kills int) {
	t.Helper()
	f := p.drain()
	acknowledged, lost, duplicates := l.totals()
	t.Logf("%d kills: %d changes acknowledged, %d lost, %d delivered twice", kills, acknowledged, lost, duplicates)
	if lost > 0 || f.Queue.GivenUp > 0 {
		t.Errorf("of %d acknowledged changes %d are lost, and %d given up: %v", acknowledged, lost, f.Queue.GivenUp, f.Results)
	}
	if most := kills * (slots + completions); duplicates > most {
		t.Errorf("%d notifications were delivered twice, want at most %d", duplicates, most)
	}
}

// TestKillDetectsLoss kills a program that doesn't enqueue notifications in the transactions of
// their changes.
func TestKillDetectsLoss(t *testing.T) {
	const changes = 8
	onEachEngine(t, func(t *testing.T, store string) {
		path, err := buildEnqueuingLater()
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, path, store)
		l := newLedger(t, p.signingKey())
		p.set("", l.serve(accepting))
		p.mustChangeEach(l, changes)
		p.kill()
		p = start(t, path, store)
		p.drain()
		if acknowledged, lost, _ := l.totals(); lost != changes || acknowledged != changes {
			t.Errorf("of %d acknowledged changes %d were found to be lost, want %d", acknowledged, lost, changes)
		}
	})
}
