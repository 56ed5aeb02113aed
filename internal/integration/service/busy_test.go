package service_test

import (
	"net/http"
	"testing"
	"time"
)

// TestBusyReceiver: a healthy receiver with a backlog far beyond its slots gets everything
// once. A notification passes through the queue only a few times, regardless of the backlog.
// A queue that doesn't wait for slots defers each of them twenty times.
func TestBusyReceiver(t *testing.T) {
	const backlog, deferrals = 400, 4 // for each, on a machine that does other work too
	onEachEngine(t, func(t *testing.T, store string) {
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, path, store, "-workers", "192", "-backlog", "200", "-max-pause", "1h")
		l := newLedger(t, p.signingKey())
		p.set("", l.serve(working))
		p.mustChange(l, "e1", backlog)
		f := p.drain()
		acknowledged, lost, duplicates := l.totals()
		if lost > 0 || duplicates > 0 {
			t.Errorf("of %d changes %d are lost, and %d delivered twice", acknowledged, lost, duplicates)
		}
		t.Logf("%d notifications were deferred %d times", backlog, f.Results["deferred/busy"])
		if n := f.Results["deferred/busy"]; n > deferrals*backlog {
			t.Errorf("%d notifications were deferred %d times, want at most %d each", backlog, n, deferrals)
		}
	})
}

// working responds after a usual time for a receiver.
func working(http.ResponseWriter, *http.Request, int) bool {
	time.Sleep(50 * time.Millisecond)
	return true
}
