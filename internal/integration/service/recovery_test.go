package service_test

import (
	"net/http"
	"testing"
)

// TestSet: when the client sets another URL, notifications that failed at the old one, or wait
// for the end of its pause, are delivered at once.
func TestSet(t *testing.T) {
	const changes = 30
	onEachEngine(t, func(t *testing.T, store string) {
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, path, store, "-schedule", "24h", "-max-pause", "24h")
		l := newLedger(t, p.signingKey())
		p.set("", l.serve(failing))
		p.mustChangeEach(l, changes)
		p.await(paused)
		p.set("", l.serve(accepting))
		l.await(func() bool { return l.received() == changes })
		p.drain()
	})
}

// TestRecovery: when a receiver recovers, everything that waited for the end of its pause is
// delivered. What failed keeps its schedule, so an outage doesn't use up attempts.
func TestRecovery(t *testing.T) {
	const changes = 100
	onEachEngine(t, func(t *testing.T, store string) {
		path, err := build()
		if err != nil {
			t.Fatal(err)
		}
		p := start(t, path, store, "-schedule", "24h", "-max-pause", "1s")
		l := newLedger(t, p.signingKey())
		recovered := make(chan struct{})
		p.set("", l.serve(func(w http.ResponseWriter, r *http.Request, nth int) bool {
			select {
			case <-recovered:
				return true
			default:
				return failing(w, r, nth)
			}
		}))
		p.mustChangeEach(l, changes)
		p.await(paused)
		close(recovered)
		f := p.await(func(f figures) bool {
			return f.Results["delivered"]+f.Results["failed/status"] == changes && f.Queue.Waiting == f.Results["failed/status"]
		})
		if f.Queue.Waiting > changes/2 {
			t.Errorf("%d wait after these results: %v", f.Queue.Waiting, f.Results)
		}
	})
}

// paused reports whether the receiver has failed five times in a row. These notifications are
// due in a day, and the others wait for the end of the pause.
func paused(f figures) bool { return f.Results["failed/status"] >= 5 }

func failing(w http.ResponseWriter, _ *http.Request, _ int) bool {
	w.WriteHeader(http.StatusInternalServerError)
	return false
}
