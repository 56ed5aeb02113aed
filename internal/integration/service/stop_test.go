package service_test

import (
	"net/http"
	"testing"
	"time"
)

// TestStop: if you stop the program, it completes the attempts under way, and leaves the
// others for the next start.
func TestStop(t *testing.T) {
	const underWay, waiting = 4, 10 // as many as a receiver gets at once, and some more
	onEachEngine(t, func(t *testing.T, store string) {
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, path, store, "-timeout", "30s")
		l := newLedger(t, p.signingKey())
		release := make(chan struct{})
		p.set("", l.serve(l.holding(release)))
		p.mustChangeEach(l, underWay+waiting)
		l.await(func() bool { return l.held >= underWay })
		p.stop()
		awaitClosed(t, p)
		close(release)
		p.wait()
		p = start(t, path, store, "-timeout", "30s")
		p.drain()
		acknowledged, lost, duplicates := l.totals()
		if lost > 0 || duplicates > 0 || l.abandoned() > 0 {
			t.Errorf("of %d changes %d are lost, and %d delivered twice; %d attempts were abandoned", acknowledged, lost, duplicates, l.abandoned())
		}
	})
}

// awaitClosed waits until the program accepts no more connections.
func awaitClosed(t *testing.T, p *program) {
	t.Helper()
	for {
		resp, err := http.Get(p.url)
		if err != nil {
			return
		}
		_ = resp.Body.Close()
		select {
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
}
