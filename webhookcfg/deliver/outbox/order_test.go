package outbox

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg/deliver"
)

// TestOrderAfterAnEarlyClaim: a client is claimed for one receiver's notifications while
// another one is paused. What waits for that one goes out before what is enqueued meanwhile.
func TestOrderAfterAnEarlyClaim(t *testing.T) {
	for name, order := range map[string]Order{"EachEntity": EachEntity, "InOrder": InOrder} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.set("a", "", w.host(1, w.responding(10*time.Millisecond, func(at time.Duration) int {
					if at < 30*time.Second {
						return 503
					}
					return 204
				})))
				w.set("a", "other", w.host(2, &peer{takes: time.Millisecond}))
				p := w.run(Options{Order: order, Schedule: deliver.Schedule{time.Hour}}, deliver.Options{})
				defer p.stop()
				for i := range 12 { // the pauses grow
					w.db.enqueue("a", fmt.Sprint("x", i), fmt.Sprint("x", i))
				}
				time.Sleep(20 * time.Second)
				w.db.enqueue("a", "e", "m1")
				time.Sleep(8 * time.Second)
				if p.has("a") {
					t.Fatal("the client hasn't been given back")
				}
				for i := range 120 {
					w.db.enqueue("a", "other", fmt.Sprint("o", i))
					if i == 5 {
						w.db.enqueue("a", "e", "m2")
					}
					time.Sleep(time.Second)
				}
				var got []string
				for _, a := range w.all() {
					if strings.HasPrefix(a.id, "m") {
						got = append(got, a.id)
					}
				}
				if !slices.Equal(got, []string{"m1", "m2"}) {
					t.Errorf("they arrived as %v", got)
				}
			})
		})
	}
}
