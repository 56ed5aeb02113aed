package webhookcfg_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/egress"
	"github.com/google/go-cmp/cmp"
)

// timesOf returns the times of changes that a handler makes one after the other.
func timesOf(t *testing.T, n int, now func() time.Time) []time.Time {
	t.Helper()
	st, o := new(timeRecorder), options()
	o.Now = now
	h := newHandler(t, st, o)
	for range n {
		if err := h.Set(t.Context(), "acme", webhookcfg.Entity("e1"), hookURL); err != nil {
			t.Fatal(err)
		}
		if err := h.Unset(t.Context(), "acme", webhookcfg.All()); err != nil {
			t.Fatal(err)
		}
	}
	return st.times
}

// timeRecorder is a store that keeps only the times of changes.
type timeRecorder struct {
	store.Memory
	mu    sync.Mutex
	times []time.Time
}

func (r *timeRecorder) Apply(_ context.Context, c webhookcfg.Change) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.times = append(r.times, c.Time)
	return nil
}

// TestChangeTimes: each change of a handler gets a later time than the change before, even if
// the clock stands still or goes back.
func TestChangeTimes(t *testing.T) {
	micros := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Microsecond) }
	for name, tt := range map[string]struct {
		clock []time.Time
		want  []time.Time
	}{
		"a clock that stands still": {[]time.Time{noon, noon, noon, noon}, []time.Time{noon, micros(1), micros(2), micros(3)}},
		"a clock that goes on":      {[]time.Time{noon, micros(1), micros(9), micros(9)}, []time.Time{noon, micros(1), micros(9), micros(10)}},
		"a clock that goes back":    {[]time.Time{noon, noon.Add(-time.Hour), noon.Add(-time.Hour), micros(3)}, []time.Time{noon, micros(1), micros(2), micros(3)}},
		"a clock of nanoseconds":    {[]time.Time{noon.Add(999), noon.Add(1999), noon.Add(1999), noon.Add(5001)}, []time.Time{noon, micros(1), micros(2), micros(5)}},
		"another zone":              {[]time.Time{noon.In(time.FixedZone("", 3600)), noon, noon, noon}, []time.Time{noon, micros(1), micros(2), micros(3)}},
		"no time at all": {make([]time.Time, 4), []time.Time{
			time.Time{}.Add(time.Microsecond), time.Time{}.Add(2 * time.Microsecond), time.Time{}.Add(3 * time.Microsecond), time.Time{}.Add(4 * time.Microsecond),
		}},
	} {
		next := 0
		got := timesOf(t, len(tt.clock)/2, func() time.Time { next++; return tt.clock[next-1] })
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestChangeTimeIsThatOfTheStore: a change gets its time after its checks, when the store
// applies it.
func TestChangeTimeIsThatOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st, o := new(timeRecorder), options()
		o.Now, o.ProbeMode = nil, webhookcfg.ProbeEnforce
		o.Prober = prober(func(context.Context, string, egress.URL) error { time.Sleep(time.Second); return nil })
		started := time.Now()
		if err := newHandler(t, st, o).Set(t.Context(), "acme", webhookcfg.All(), hookURL); err != nil {
			t.Fatal(err)
		}
		if got := st.times[0]; !got.Equal(started.Add(time.Second)) || got.Location() != time.UTC {
			t.Errorf("a change that was probed for a second has the time %v, %v after its start", got, got.Sub(started))
		}
	})
}

// TestConcurrentChangeTimes: concurrent changes have different times.
func TestConcurrentChangeTimes(t *testing.T) {
	st := new(timeRecorder)
	h := newHandler(t, st, options())
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 50 {
				if err := h.Unset(t.Context(), "acme", webhookcfg.All()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	seen := make(map[time.Time]bool)
	for _, at := range st.times {
		seen[at] = true
	}
	if len(seen) != 8*50 {
		t.Errorf("%d times for %d changes", len(seen), 8*50)
	}
}
