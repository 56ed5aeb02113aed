package service_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

var rounds = flag.Int("rounds", 10, "how many times TestKill kills the program over each database")

const (
	modules = 20
	callers = 4
	// drainEvery is after how many rounds the queue is emptied.
	drainEvery = 100
)

// TestKill kills the program at random moments, while it acknowledges changes and delivers
// notifications to receivers of all kinds. All acknowledged changes must arrive. With each
// kill, only about as many may arrive twice as were under way, or were accepted within a tenth
// of a second before it.
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
				p.mustChange(l, moduleName(n))
				p.set(moduleName(n), target)
			}
		}
		uncertain := 0
		for n := 1; n <= *rounds; n++ {
			uncertain += killAfter(p, l, 1+rand.IntN(150))
			p = start(t, path, store)
			if n%drainEvery == 0 || n == *rounds {
				expectDelivered(t, p, l, n, uncertain)
			}
		}
		p.stop()
		p.wait()
	})
}

func moduleName(n int) string { return fmt.Sprint("e", n) }

// killAfter changes modules concurrently, and kills the program after n acknowledgements. It
// returns how many notifications the program may not have written down.
func killAfter(p *program, l *ledger, n int) (uncertain int) {
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
	l.forgetAccepted(time.Now().Add(-100 * time.Millisecond))
	p.kill()
	uncertain = l.uncertain()
	go func() {
		for range acknowledged {
		}
	}()
	all.Wait()
	close(acknowledged)
	return uncertain
}

// expectDelivered waits until the queue is empty, after this many kills. On a busy machine, a
// write takes longer than a tenth of a second, so the limit has some room. TestKilled of package
// outbox has none, in virtual time.
func expectDelivered(t *testing.T, p *program, l *ledger, kills, uncertain int) {
	t.Helper()
	f := p.drain()
	acknowledged, lost, duplicates := l.totals()
	t.Logf("%d kills: %d changes acknowledged, %d lost, %d delivered twice, %d were uncertain", kills, acknowledged, lost, duplicates, uncertain)
	if lost > 0 || f.Queue.GivenUp > 0 {
		t.Errorf("of %d acknowledged changes %d are lost, and %d given up: %v", acknowledged, lost, f.Queue.GivenUp, f.Results)
	}
	if duplicates > 2*uncertain+8*kills {
		t.Errorf("%d notifications were delivered twice, want about %d", duplicates, uncertain)
	}
}
