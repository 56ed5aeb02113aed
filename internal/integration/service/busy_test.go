package service_test

import (
	"net/http"
	"testing"
	"time"
)

// TestBusyReceiver: a healthy receiver with a backlog far beyond its slots gets everything
// once, and nothing is deferred.
func TestBusyReceiver(t *testing.T) {
	const backlog = 400
	onEachEngine(t, func(t *testing.T, store string) {
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, path, store, "-max-pause", "1h")
		l := newLedger(t, p.signingKey())
		p.set("", l.serve(working))
		p.mustChangeEach(l, backlog)
		f := p.drain()
		acknowledged, lost, duplicates := l.totals()
		if lost > 0 || duplicates > 0 {
			t.Errorf("of %d changes %d are lost, and %d delivered twice", acknowledged, lost, duplicates)
		}
		if n := f.Results["delivered"]; n != backlog || f.Results["deferred/busy"] != 0 {
			t.Errorf("results are %v, want %d delivered and none deferred", f.Results, backlog)
		}
	})
}

// working responds after a usual time for a receiver.
func working(http.ResponseWriter, *http.Request, int) bool {
	time.Sleep(50 * time.Millisecond)
	return true
}
