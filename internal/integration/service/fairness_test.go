package service_test

import "testing"

const (
	flood   = 64 // notifications for a receiver that hangs
	healthy = 20 // notifications for a healthy one, enqueued after these
)

// TestHangingReceiver: a receiver that hangs and has more notifications than its client has
// slots delays neither the client's other receivers nor other clients.
func TestHangingReceiver(t *testing.T) {
	onEachEngine(t, func(t *testing.T, store string) {
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, path, store, "-timeout", "30s")
		l := newLedger(t, p.signingKey())
		release := make(chan struct{})
		p.set("", l.serve(l.holding(release)))
		p.mustChangeEach(l, flood)
		l.await(func() bool { return l.held > 0 })
		p.mustChange(l, "healthy", 1)
		p.set("healthy", l.serve(accepting))
		p.mustChange(l, "healthy", healthy)
		neighbour := p.as(neighbour)
		n := newLedger(t, neighbour.signingKey())
		neighbour.set("", n.serve(accepting))
		neighbour.mustChange(n, "e1", healthy)
		n.await(func() bool { return n.count("e1") >= healthy })
		var peak int
		l.await(func() bool { peak = l.peak; return l.count("healthy") >= healthy })
		if peak >= slots {
			t.Error("the receiver that hangs took all slots of its client")
		}
		close(release)
		p.drain()
		for _, l := range []*ledger{l, n} {
			if acknowledged, lost, _ := l.totals(); lost > 0 {
				t.Errorf("of %d changes %d are lost", acknowledged, lost)
			}
		}
	})
}
