package service_test

import "testing"

const (
	flood   = 4 * workers // notifications for a receiver that hangs
	healthy = 20          // notifications for a healthy one, enqueued after these
)

// TestHangingReceiver: a receiver that hangs and has more notifications than there are
// workers doesn't delay the others.
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
		p.mustChange(l, "hanging", flood)
		l.await(func() bool { return l.held > 0 })
		p.mustChange(l, "healthy", 1)
		p.set("healthy", l.serve(accepting))
		p.mustChange(l, "healthy", healthy)
		var peak int
		l.await(func() bool { peak = l.peak; return l.count("healthy") >= healthy })
		if peak >= workers {
			t.Error("the receiver that hangs took all workers")
		}
		close(release)
		p.drain()
		if acknowledged, lost, _ := l.totals(); lost > 0 {
			t.Errorf("of %d changes %d are lost", acknowledged, lost)
		}
	})
}
