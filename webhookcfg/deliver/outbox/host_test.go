package outbox

import (
	"context"
	"database/sql"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store/sqlstore"
	"example.com/go-webhookcfg/webhookcfg/deliver"
	"example.com/go-webhookcfg/webhookcfg/egress"
)

// TestPrepareFails: a Prepare that panics or fails ends no process, and costs no attempts. The
// notification arrives once it works.
func TestPrepareFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(0, &peer{}))
		var calls atomic.Int32
		ends := make(chan End, 1)
		n := w.run(Options{OnEnd: func(e End) { ends <- e }}, deliver.Options{
			Prepare: func(_ context.Context, _, _ string, _ deliver.Message, r *http.Request) error {
				switch calls.Add(1) {
				case 1:
					panic("of the host")
				case 2:
					r.Method = http.MethodPut
				}
				return nil
			},
		})
		defer n.stop()
		w.db.enqueue("a", "e", "m")
		w.await(1, time.Minute)
		if e := <-ends; e.State != Delivered || e.Attempts != 1 || calls.Load() != 3 {
			t.Errorf("%v after %d attempts and %d calls", e.State, e.Attempts, calls.Load())
		}
	})
}

// TestTooLargeForReceiver: a 413 ends a notification at its first attempt. It's given up, so
// that it can be sent again, and doesn't hold up the next one.
func TestTooLargeForReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set("a", "", w.host(0, &peer{respond: func(id string) int {
			if id == "large" {
				return http.StatusRequestEntityTooLarge
			}
			return http.StatusNoContent
		}}))
		ends := make(chan End, 2)
		n := w.run(Options{Order: InOrder, OnEnd: func(e End) { ends <- e }}, deliver.Options{})
		defer n.stop()
		w.db.enqueue("a", "e", "large")
		w.db.enqueue("a", "e", "small")
		w.await(2, time.Minute)
		if e := <-ends; e.State != GivenUp || e.Attempts != 1 || e.Reason != deliver.ReasonStatus {
			t.Errorf("the large one is %v after %d attempts: %s", e.State, e.Attempts, e.Reason)
		}
		if e := <-ends; e.State != Delivered || e.Attempts != 1 {
			t.Errorf("the small one is %v after %d attempts: %s", e.State, e.Attempts, e.Reason)
		}
	})
}

// TestMaxBody: the queue takes no body that its sender wouldn't send.
func TestMaxBody(t *testing.T) {
	sender, err := deliver.New(newWorld(t), testKeys{deliver.GenerateKey()}, &deliver.Options{Policy: egress.Development(), MaxBody: 100})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		sender    *deliver.Sender
		max, want int // 0: an error
	}{
		{nil, 0, 256 << 10},
		{nil, 1 << 20, 1 << 20},
		{nil, -1, 0},
		{sender, 0, 100},
		{sender, 100, 100},
		{sender, 99, 99},
		{sender, 101, 0},
		{sender, -1, 0},
	} {
		box, err := New(new(sql.DB), sqlstore.SQLite(), tt.sender, &Options{MaxBody: tt.max})
		if tt.want == 0 {
			if err == nil {
				t.Errorf("%d is accepted", tt.max)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for size, fits := range map[int]bool{tt.want: true, tt.want + 1: false} {
			n := Notification{Client: "a", Entity: "e", Message: deliver.Message{Body: make([]byte, size)}}
			if _, _, err := box.Statement(n); (err == nil) != fits {
				t.Errorf("MaxBody %d: a body of %d bytes: %v", tt.max, size, err)
			}
		}
	}
}
