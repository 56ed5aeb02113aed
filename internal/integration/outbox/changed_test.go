package outbox_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/deliver/outbox"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestChanged: what waits for a webhook that is paused for half an hour is sent at once where it leads
// after a change, whether that is an entity's override or the base, and another process has made the
// change. What the change isn't about goes on waiting, and no mark is left.
func TestChanged(t *testing.T) {
	t.Parallel()
	var all together
	for _, e := range engines {
		all.start(t, e.name, func(t *testing.T) {
			f := newFixture(t, e, &outbox.Options{Schedule: deliver.Schedule{time.Hour, time.Hour, time.Hour}}, nil)
			f.respond = func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/paused" {
					w.Header().Set("Retry-After", "1800")
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}
			other := f.peer(e, open(t, e.driver, f.dsn), outbox.Options{})
			at := func(host int, path string) egress.URL {
				return egress.NewURL(strings.Replace(f.server.URL, "127.0.0.1", fmt.Sprint("127.0.0.", host), 1) + path)
			}
			change := func(scope webhookcfg.Scope, to egress.URL) {
				f.apply(webhookcfg.SetChange("a", scope, to))
				other.Changed("a", scope)
			}
			f.set("a", "/paused")
			f.apply(webhookcfg.SetChange("a", webhookcfg.Entity("own"), at(2, "/paused")))
			f.run()
			f.enqueue("a", "e", "tried")
			f.enqueue("a", "own", "own")
			f.awaitAttempt("a", "tried")
			f.awaitAttempt("a", "own")
			f.enqueue("a", "e", "new")
			f.enqueue("a", "left", "left")
			f.awaitSorted(2)

			change(webhookcfg.Entity("e"), at(3, "/"))
			f.awaitArrivals("tried", 2)
			f.awaitArrivals("new", 1)
			f.awaitEnds(outbox.Delivered, 2)
			change(webhookcfg.Entity("own"), at(4, "/"))
			f.awaitArrivals("own", 2)
			f.awaitEnds(outbox.Delivered, 3)
			if n, err := f.box.Notification(t.Context(), "a", "left"); err != nil || n.State != "waiting" || n.Attempts > 0 {
				t.Errorf("%+v, %v", n, err)
			}
			change(webhookcfg.All(), at(1, "/"))
			f.awaitArrivals("left", 1)
			f.awaitEnds(outbox.Delivered, 4)
			f.awaitNoMarks()
		})
	}
	all.wait()
}

// awaitSorted waits until n notifications that were never tried wait for their webhooks.
func (f *fixture) awaitSorted(n int) {
	f.t.Helper()
	got := 0
	for range 2000 {
		if err := f.db.QueryRow("SELECT COUNT(*) FROM " + f.prefix + "outbox_message WHERE state = 0 AND attempts = 0 AND grp > 1").Scan(&got); err == nil && got == n {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	f.t.Fatalf("%d wait for their webhooks, want %d", got, n)
}
