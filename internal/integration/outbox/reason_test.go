package outbox_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"example.com/go-webhookcfg/webhookcfg/sent"
)

// TestDroppedReasons: a client sees why a notification was dropped: the entity was turned off,
// nothing was set, or deliveries were stopped. If it sends them all again and has repaired nothing,
// they're dropped again, for the same reasons.
func TestDroppedReasons(t *testing.T) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			health, err := deliver.NewHealth(nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			f := newFixture(t, e, nil, &deliver.Options{Health: health})
			f.respond = func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/gone" {
					w.WriteHeader(http.StatusGone)
				}
			}
			f.set("a", "/")
			f.apply(webhookcfg.UnsetChange("a", webhookcfg.Entity("off")))
			f.apply(webhookcfg.SetChange("a", webhookcfg.Entity("stopped"), egress.NewURL(f.server.URL+"/gone")))
			f.run()
			f.enqueue("a", "stopped", "first")
			f.awaitShown("a", "first dropped gone")
			f.enqueue("a", "off", "m1", "m2")
			f.enqueue("a", "stopped", "m3")
			f.enqueue("a", "good", "m4")
			f.enqueue("none", "e", "m5")
			f.awaitShown("none", "m5 dropped no_webhook")
			f.awaitShown("a", "first dropped gone", "m1 dropped off", "m2 dropped off", "m3 dropped stopped", "m4 delivered ")

			all := sent.Selection{Scope: webhookcfg.All()}
			if plan, err := f.box.PlanSendAgain(t.Context(), "a", all); err != nil || plan.Count != 4 {
				t.Errorf("plan %+v, %v, want what was selected", plan, err)
			}
			if err := f.box.SendAgain(t.Context(), "a", all); err != nil {
				t.Fatal(err)
			}
			f.awaitResend("a", 4)
			f.awaitShown("a", "first dropped stopped", "m1 dropped off", "m2 dropped off", "m3 dropped stopped", "m4 delivered ")
			f.mu.Lock()
			defer f.mu.Unlock()
			if len(f.order) != 2 {
				t.Errorf("arrived: %q", f.order)
			}
		})
	}
}

// awaitShown waits until a client sees these notifications with their states and reasons.
func (f *fixture) awaitShown(client string, want ...string) {
	f.t.Helper()
	var got []string
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		page, err := f.box.Notifications(f.t.Context(), client, sent.Query{Limit: 100})
		if err != nil {
			f.t.Fatal(err)
		}
		got = nil
		for _, n := range page.Notifications {
			got = append(got, fmt.Sprintf("%s %s %s", n.ID, n.State, n.Reason))
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			return
		}
	}
	f.t.Fatalf("%s sees\n%s\nwant\n%s", client, strings.Join(got, "\n"), strings.Join(want, "\n"))
}
