package deliver_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/webhookcfg"
	"example.com/go-webhookcfg/webhookcfg/deliver"
)

var errBroken = errors.New("broken on purpose")

// healthStore is a HealthStore as a database would be: with times in microseconds.
type healthStore struct {
	mu           sync.Mutex
	saved        map[string]deliver.Record
	loads, saves int
	// load and save, if not nil, are called first, without the lock.
	load, save func(ctx context.Context) error
}

func (s *healthStore) LoadDelivery(ctx context.Context, client string, scope webhookcfg.Scope) (deliver.Record, error) {
	s.mu.Lock()
	s.loads++
	fault := s.load
	s.mu.Unlock()
	if fault != nil {
		if err := fault(ctx); err != nil {
			return deliver.Record{}, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.saved[client+" "+scope.String()], nil
}

func (s *healthStore) SaveDelivery(ctx context.Context, client string, scope webhookcfg.Scope, d deliver.Record) error {
	s.mu.Lock()
	s.saves++
	fault := s.save
	s.mu.Unlock()
	if fault != nil {
		if err := fault(ctx); err != nil {
			return err
		}
	}
	for _, at := range []*time.Time{&d.Since, &d.LastSuccess, &d.LastFailure, &d.FirstFailure} {
		*at = at.Round(0).UTC().Truncate(time.Microsecond)
	}
	latest := func(d deliver.Record) int64 { return max(d.LastSuccess.UnixMicro(), d.LastFailure.UnixMicro()) }
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.saved == nil {
		s.saved = map[string]deliver.Record{}
	}
	if key := client + " " + scope.String(); latest(d) >= latest(s.saved[key]) {
		s.saved[key] = d
	}
	return nil
}

// calls returns the numbers of loads and saves since the last call.
func (s *healthStore) calls() (loads, saves int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	loads, saves = s.loads, s.saves
	s.loads, s.saves = 0, 0
	return loads, saves
}

// fail makes the calls fail; nil makes them work again.
func (s *healthStore) fail(load, save func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.load, s.save = load, save
}

// process is one process that sends for acme, in the time of synctest.
type process struct {
	*deliver.Health
	hook webhookcfg.Webhook
}

// newProcess returns a process with a webhook that was set a minute ago.
func newProcess(t *testing.T, st deliver.HealthStore) process {
	return process{newHealth(t, st, nil), webhookcfg.Webhook{Source: webhookcfg.SourceBase, Since: time.Now().Add(-time.Minute).Truncate(time.Microsecond)}}
}

// send makes the calls of Send, and reports whether the webhook was stopped.
func (p process) send(outcome deliver.Outcome, reason deliver.Reason) (stopped bool) {
	if _, stopped := p.stopped(); stopped {
		return true
	}
	p.record(outcome, reason)
	return false
}

func (p process) stopped() (deliver.Reason, bool) {
	return p.Stopped(context.Background(), "acme", "e1", p.hook)
}

func (p process) record(outcome deliver.Outcome, reason deliver.Reason) {
	p.Record(context.Background(), "acme", "e1", deliver.Result{Outcome: outcome, Reason: reason, Webhook: p.hook}, time.Now())
}

// state returns what a client reads.
func (p process) state(t *testing.T) string {
	t.Helper()
	d, err := p.Status(t.Context(), "acme", "e1", p.hook)
	if err != nil {
		t.Error(err)
	}
	return strings.TrimSpace(fmt.Sprint(d.State, " ", d.Reason))
}

// TestHealthStoreCalls: a webhook in use costs one load and one save a minute, and one of
// each for every change of its state or reason.
func TestHealthStoreCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Nanosecond) // which the store drops
		st := &healthStore{}
		p := newProcess(t, st)
		expect := func(step string, loads, saves int) {
			t.Helper()
			if l, s := st.calls(); l != loads || s != saves {
				t.Errorf("%s: %d loads and %d saves, want %d and %d", step, l, s, loads, saves)
			}
		}
		many := func(outcome deliver.Outcome, reason deliver.Reason) {
			for range 100 {
				p.send(outcome, reason)
				time.Sleep(100 * time.Millisecond)
			}
		}
		p.stopped()
		expect("first send", 1, 0)
		p.record(deliver.Delivered, "")
		expect("first success", 1, 1)
		many(deliver.Delivered, "")
		expect("successes", 0, 0)
		time.Sleep(time.Minute)
		many(deliver.Delivered, "")
		expect("a minute later", 1, 1)
		many(deliver.Failed, deliver.ReasonStatus)
		expect("failures", 1, 1)
		many(deliver.Failed, deliver.ReasonRedirect)
		expect("another reason", 1, 1)
		many(deliver.Failed, deliver.ReasonUnreachable)
		expect("a third reason", 1, 1)
		p.send(deliver.Undeliverable, deliver.ReasonGone)
		expect("gone", 1, 1)
		time.Sleep(10 * time.Minute)
		many(deliver.Delivered, "")
		expect("stopped", 1, 0)
		p.hook.Since = time.Now().Add(-time.Second).Truncate(time.Microsecond)
		many(deliver.Delivered, "")
		expect("set again", 2, 1)
		p.hook.Since = time.Now().Truncate(time.Microsecond)
		p.send(deliver.Undeliverable, deliver.ReasonGone)
		expect("set again, gone in the same second", 2, 2)
		time.Sleep(time.Second)
		p.send(deliver.Undeliverable, deliver.ReasonGone)
		expect("stopped a second later", 0, 0)
		time.Sleep(time.Hour)
		expect("idle", 0, 0)
	})
}

// TestHealthStoreAlternation: a receiver that alternates does not make every delivery a write,
// and its stop is saved all the same.
func TestHealthStoreAlternation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		p := newProcess(t, st)
		for range 1000 {
			p.send(deliver.Delivered, "")
			p.send(deliver.Failed, deliver.ReasonStatus)
			time.Sleep(10 * time.Millisecond)
		}
		if loads, saves := st.calls(); loads > 10 || saves > 10 {
			t.Errorf("%d loads and %d saves", loads, saves)
		}
		p.send(deliver.Undeliverable, deliver.ReasonGone)
		if !p.send(deliver.Delivered, "") {
			t.Error("not stopped at once")
		}
		time.Sleep(time.Minute)
		p.send(deliver.Delivered, "")
		if reason, stopped := newProcess(t, st).restarted(p).stopped(); !stopped || reason != deliver.ReasonGone {
			t.Errorf("after a restart: %v, %q", stopped, reason)
		}
	})
}

// restarted returns the process with the webhook of another.
func (p process) restarted(other process) process {
	p.hook = other.hook
	return p
}

// TestHealthStoreReplicas: a process learns of the stop of another within a minute, and does
// not overwrite it before.
func TestHealthStoreReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		a, b := newProcess(t, st), newProcess(t, st)
		a.send(deliver.Delivered, "")
		time.Sleep(10 * time.Second)
		b.send(deliver.Delivered, "")
		time.Sleep(10 * time.Second)
		a.send(deliver.Undeliverable, deliver.ReasonGone)
		reader := newProcess(t, st).restarted(a)
		if got := reader.state(t); got != "stopped gone" {
			t.Errorf("a process that only reads: %s", got)
		}
		time.Sleep(10 * time.Second)
		if b.send(deliver.Failed, deliver.ReasonStatus) {
			t.Error("the other process asked the store for each attempt")
		}
		for name, p := range map[string]process{"a": a, "b, which had to save a change": b, "restarted": newProcess(t, st).restarted(a)} {
			if reason, stopped := p.stopped(); !stopped || reason != deliver.ReasonGone {
				t.Errorf("%s: %v, %q", name, stopped, reason)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		a, b := newProcess(t, st), newProcess(t, st)
		b.send(deliver.Delivered, "")
		a.send(deliver.Undeliverable, deliver.ReasonGone)
		time.Sleep(59 * time.Second)
		if b.send(deliver.Delivered, "") {
			t.Error("b learned of the stop, but has it read in the last minute?")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		a, b := newProcess(t, st), newProcess(t, st)
		b.send(deliver.Delivered, "")
		time.Sleep(time.Second)
		a.send(deliver.Undeliverable, deliver.ReasonGone)
		time.Sleep(time.Minute)
		if !b.send(deliver.Delivered, "") {
			t.Error("b has not learned of the stop after a minute")
		}
	})
}

// TestHealthStoreRead: a read shows what this process knows, and what others saved.
func TestHealthStoreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		a, b := newProcess(t, st), newProcess(t, st)
		a.send(deliver.Delivered, "")
		time.Sleep(10 * time.Second)
		b.send(deliver.Failed, deliver.ReasonStatus)
		failed := time.Now()
		time.Sleep(10 * time.Second)
		a.send(deliver.Delivered, "")
		d, err := a.Status(t.Context(), "acme", "e1", a.hook)
		if err != nil || d.State != "ok" || !d.LastSuccess.Equal(time.Now()) || !d.LastFailure.Equal(failed) {
			t.Errorf("%+v, %v", d, err)
		}
	})
}

// TestHealthStoreSetAgain: the record of what was set before is ignored, and then replaced.
func TestHealthStoreSetAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		old := newProcess(t, st)
		old.send(deliver.Undeliverable, deliver.ReasonGone)
		now := newProcess(t, st)
		now.hook.Since = now.hook.Since.Add(time.Microsecond)
		if _, stopped := now.stopped(); stopped || now.state(t) != "" {
			t.Errorf("stopped %v, shown as %q", stopped, now.state(t))
		}
		now.send(deliver.Delivered, "")
		for _, p := range []process{now, newProcess(t, st).restarted(now)} {
			if got := p.state(t); got != "ok" {
				t.Errorf("state %q", got)
			}
		}
		if got := newProcess(t, st).restarted(old).state(t); got != "" {
			t.Errorf("what was set before is %q", got)
		}
	})
}

// TestHealthStoreSeries: an outage goes on over a restart.
func TestHealthStoreSeries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		first := newProcess(t, st)
		first.send(deliver.Delivered, "") // in the same second as the first failure
		p := first
		for range 5 {
			p.send(deliver.Failed, deliver.ReasonUnreachable)
			if got := p.state(t); got != "failing unreachable" {
				t.Errorf("state %s", got)
			}
			time.Sleep(24 * time.Hour)
			p = newProcess(t, st).restarted(first)
		}
		p.send(deliver.Failed, deliver.ReasonUnreachable)
		if got := p.state(t); got != "stopped expired" {
			t.Errorf("state %s", got)
		}
	})
}

// TestHealthStoreSameSecond: of two reasons in one second the second one is saved, and so is a
// success after the webhook was set again.
func TestHealthStoreSameSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		p := newProcess(t, st)
		p.send(deliver.Failed, deliver.ReasonStatus)
		p.send(deliver.Failed, deliver.ReasonRedirect)
		if got := newProcess(t, st).state(t); got != "failing redirect" {
			t.Errorf("saved is %q", got)
		}
		p.send(deliver.Delivered, "")
		p.hook.Since = p.hook.Since.Add(time.Microsecond)
		p.send(deliver.Delivered, "")
		if got := newProcess(t, st).restarted(p).state(t); got != "ok" {
			t.Errorf("saved since it was set again is %q", got)
		}
	})
}

// TestHealthStoreSuccessElsewhere: a success in one process interrupts the outage that
// another sees.
func TestHealthStoreSuccessElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		a, b := newProcess(t, st), newProcess(t, st)
		b.send(deliver.Delivered, "")
		for _, step := range []struct {
			process
			outcome deliver.Outcome
			reason  deliver.Reason
		}{
			{a, deliver.Failed, deliver.ReasonStatus},
			{b, deliver.Delivered, ""}, // not saved yet
			{a, deliver.Failed, deliver.ReasonRedirect},
			{b, deliver.Failed, deliver.ReasonStatus},
		} {
			time.Sleep(5 * time.Second)
			step.send(step.outcome, step.reason)
		}
		r, err := b.Load(t.Context(), "acme", "e1", b.hook)
		if err != nil || r.Stopped || r.Reason != deliver.ReasonStatus || !r.FirstFailure.After(r.LastSuccess) {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

// TestHealthStoreFailures: while the store fails, messages are sent, the state is that of the
// process, and reads fail. It is not asked more often than when it works.
func TestHealthStoreFailures(t *testing.T) {
	broken := func(context.Context) error { return errBroken }
	hanging := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for _, tt := range []struct {
		name       string
		load, save func(context.Context) error
		wait       time.Duration // of each call
	}{
		{"load", broken, nil, 0},
		{"load and save", broken, broken, 0},
		{"save", nil, broken, 0},
		{"load hangs", hanging, nil, 2 * time.Second},
		{"save hangs", nil, hanging, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var records bytes.Buffer
				st := &healthStore{}
				p := newProcess(t, st)
				p.Health = newHealth(t, st, &deliver.HealthOptions{Logger: slog.New(slog.NewTextHandler(&records, nil))})
				st.fail(tt.load, tt.save)

				start := time.Now()
				for range 100 {
					if p.send(deliver.Failed, deliver.ReasonStatus) {
						t.Fatal("stopped by a store that fails")
					}
				}
				if took := time.Since(start); took != tt.wait {
					t.Errorf("100 attempts waited %v", took)
				}
				p.send(deliver.Undeliverable, deliver.ReasonGone)
				if !p.send(deliver.Delivered, "") {
					t.Error("not stopped in this process")
				}
				if loads, saves := st.calls(); loads > 2 || saves > 1 {
					t.Errorf("%d loads and %d saves", loads, saves)
				}
				if text := records.String(); strings.Count(text, "HealthStore failed") != 1 || !strings.Contains(text, "client=acme scope=all error=") {
					t.Errorf("logged %s", text)
				}
				if tt.load != nil {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if _, err := p.Status(ctx, "acme", "e1", p.hook); !errors.Is(err, errBroken) && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("a read has the error %v", err)
					}
				}
				time.Sleep(time.Minute)
				p.send(deliver.Delivered, "")
				if n := strings.Count(records.String(), "HealthStore failed"); n != 2 {
					t.Errorf("%d records after a minute", n)
				}

				// It works again: the stop is saved, though nothing is sent any more.
				st.fail(nil, nil)
				time.Sleep(time.Minute)
				p.send(deliver.Delivered, "")
				if got := newProcess(t, st).restarted(p).state(t); got != "stopped gone" {
					t.Errorf("saved is %q", got)
				}
			})
		})
	}
}

// TestHealthStoreContext: what an attempt showed is saved though its caller is gone; a read
// ends with its caller.
func TestHealthStoreContext(t *testing.T) {
	st := &healthStore{}
	alive := func(ctx context.Context) error {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("no deadline")
		}
		return ctx.Err()
	}
	st.fail(alive, alive)
	p := newProcess(t, st)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p.Record(ctx, "acme", "e1", deliver.Result{Outcome: deliver.Undeliverable, Reason: deliver.ReasonGone, Webhook: p.hook}, time.Now())
	again := newProcess(t, st).restarted(p)
	if _, stopped := again.Stopped(ctx, "acme", "e1", p.hook); !stopped {
		t.Error("the stop was lost with the caller")
	}
	st.fail(func(ctx context.Context) error { return ctx.Err() }, nil)
	if _, err := p.Status(ctx, "acme", "e1", p.hook); !errors.Is(err, context.Canceled) {
		t.Errorf("a read has the error %v", err)
	}
}

// TestHealthStoreFirstLoad: of concurrent sends after a restart, one reads the record, and the
// others wait for it, but not longer than their contexts allow.
func TestHealthStoreFirstLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		old := newProcess(t, st)
		old.send(deliver.Undeliverable, deliver.ReasonGone)
		st.calls()
		st.fail(func(context.Context) error { time.Sleep(time.Second); return nil }, nil)
		p := newProcess(t, st).restarted(old)
		for i := range 10 {
			go func() {
				if _, stopped := p.stopped(); !stopped {
					t.Errorf("send %d was not stopped", i)
				}
			}()
		}
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		start := time.Now()
		if _, stopped := p.Stopped(ctx, "acme", "e1", p.hook); stopped || time.Since(start) != time.Second/2 {
			t.Errorf("stopped %v after %v", stopped, time.Since(start))
		}
		time.Sleep(time.Second)
		if loads, _ := st.calls(); loads != 1 {
			t.Errorf("%d loads", loads)
		}

		// Later no caller waits for another.
		time.Sleep(time.Minute)
		go p.stopped()
		synctest.Wait()
		start = time.Now()
		if _, stopped := p.stopped(); !stopped || time.Since(start) != 0 {
			t.Errorf("stopped %v after %v", stopped, time.Since(start))
		}
		time.Sleep(time.Second)
	})
}

// TestHealthStoreChangeDuringSync: a change during a slow save is saved after it, by the same
// caller.
func TestHealthStoreChangeDuringSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		p := newProcess(t, st)
		p.stopped()
		st.fail(nil, func(context.Context) error { time.Sleep(time.Second); return nil })
		go p.record(deliver.Failed, deliver.ReasonStatus)
		synctest.Wait()
		start := time.Now()
		p.record(deliver.Undeliverable, deliver.ReasonGone)
		if took := time.Since(start); took != 0 {
			t.Errorf("a call waited %v for the save of another", took)
		}
		time.Sleep(3 * time.Second)
		if got := newProcess(t, st).restarted(p).state(t); got != "stopped gone" {
			t.Errorf("saved is %q", got)
		}
	})
}

// TestHealthStorePanic: a panic of the store is one of Send, and the record stays usable.
func TestHealthStorePanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		p := newProcess(t, st)
		st.fail(func(context.Context) error { panic(errBroken) }, nil)
		func() {
			defer func() {
				if value := recover(); value != errBroken {
					t.Errorf("recovered %v", value)
				}
			}()
			p.stopped()
		}()
		st.fail(nil, nil)
		if p.send(deliver.Undeliverable, deliver.ReasonGone) || !p.send(deliver.Delivered, "") {
			t.Error("not as it should be after a panic")
		}
		time.Sleep(time.Minute)
		p.send(deliver.Delivered, "")
		if got := newProcess(t, st).restarted(p).state(t); got != "stopped gone" {
			t.Errorf("saved is %q", got)
		}
	})
}

// TestHealthStoreConvergence: processes that send concurrently, restart now and then, and see
// random results, agree in the end, and on a stop if nothing but failures followed it.
func TestHealthStoreConvergence(t *testing.T) {
	stops := 0
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 17))
			st := &healthStore{}
			first := newProcess(t, st)
			processes := []process{first, newProcess(t, st), newProcess(t, st)}
			gone, goneLast := false, false
			for range 200 {
				i := random.IntN(len(processes))
				if random.IntN(20) == 0 {
					processes[i] = newProcess(t, st).restarted(first)
				}
				outcome, reason := deliver.Delivered, deliver.Reason("")
				switch n := random.IntN(60); {
				case n == 0:
					outcome, reason = deliver.Undeliverable, deliver.ReasonGone
				case n < 30:
					outcome, reason = deliver.Failed, deliver.ReasonStatus
				}
				if !processes[i].send(outcome, reason) && outcome != deliver.Failed {
					goneLast = reason == deliver.ReasonGone
					gone = gone || goneLast
				}
				time.Sleep(time.Duration(1+random.IntN(20)) * time.Second)
			}
			for range 2 {
				time.Sleep(time.Minute)
				for _, p := range processes {
					p.stopped()
				}
			}
			var states []string
			for _, p := range append(processes, newProcess(t, st).restarted(first)) {
				states = append(states, p.state(t))
				// A success after the 410 may have been lost in a restart.
				if _, stopped := p.stopped(); goneLast && !stopped || stopped && !gone {
					t.Errorf("seed %d: stopped %v; a 410: %v, as the last: %v", seed, stopped, gone, goneLast)
				}
			}
			if len(slices.Compact(states)) > 1 {
				t.Errorf("seed %d: the processes disagree: %q", seed, states)
			}
			if goneLast {
				stops++
			}
		})
	}
	if stops < 10 || stops > 95 {
		t.Errorf("%d of 100 histories end in a stop", stops)
	}
}

// TestHealthStoreOverwrittenStop: a stop that another process overwrote with a later failure,
// since it had read the record before, is saved again.
func TestHealthStoreOverwrittenStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &healthStore{}
		a, b := newProcess(t, st), newProcess(t, st)
		b.stopped()
		st.fail(nil, func(context.Context) error { time.Sleep(1500 * time.Millisecond); return nil })
		go a.send(deliver.Undeliverable, deliver.ReasonGone)
		time.Sleep(time.Second)
		b.record(deliver.Failed, deliver.ReasonStatus)
		st.fail(nil, nil)
		if got := newProcess(t, st).restarted(a).state(t); got != "failing status" {
			t.Fatalf("saved is %q: the stop was not overwritten", got)
		}
		time.Sleep(time.Minute)
		a.stopped()
		if reason, stopped := newProcess(t, st).restarted(a).stopped(); !stopped || reason != deliver.ReasonGone {
			t.Errorf("after a restart: %v, %q", stopped, reason)
		}
		time.Sleep(time.Minute)
		st.calls()
		a.stopped()
		if _, saves := st.calls(); saves != 0 {
			t.Errorf("%d saves of what is saved", saves)
		}
	})
}

// TestHealthStoreHangs: a store that hangs delays one message, not one to each webhook, and is
// used again soon after it works.
func TestHealthStoreHangs(t *testing.T) {
	hanging := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
	for name, fail := range map[string]func(*healthStore){
		"load": func(st *healthStore) { st.fail(hanging, nil) },
		"save": func(st *healthStore) { st.fail(nil, hanging) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				st := &healthStore{}
				p := newProcess(t, st)
				fail(st)
				start := time.Now()
				for i := range 100 {
					result := deliver.Result{Outcome: deliver.Undeliverable, Reason: deliver.ReasonGone, Webhook: p.hook}
					result.Webhook.Source = webhookcfg.SourceOverride
					entity := fmt.Sprint("e", i)
					p.Stopped(t.Context(), "acme", entity, result.Webhook)
					p.Record(t.Context(), "acme", entity, result, time.Now())
				}
				if took := time.Since(start); took != 2*time.Second {
					t.Errorf("messages to 100 webhooks waited %v", took)
				}
				st.fail(nil, nil)
				time.Sleep(10 * time.Second)
				hook := p.hook
				hook.Source = webhookcfg.SourceOverride
				p.Stopped(t.Context(), "acme", "e99", hook)
				if _, stopped := newProcess(t, st).Stopped(t.Context(), "acme", "e99", hook); !stopped {
					t.Error("a stop was not saved after the store worked again")
				}
			})
		})
	}
}

// TestHealthStoreErrorOfOne: an error about one webhook, unlike a store that hangs, has no
// effect on another.
func TestHealthStoreErrorOfOne(t *testing.T) {
	st := &healthStore{}
	p := newProcess(t, st)
	stop := deliver.Result{Outcome: deliver.Undeliverable, Reason: deliver.ReasonGone, Webhook: p.hook}
	p.Record(t.Context(), "other", "e1", stop, time.Now())
	st.fail(func(context.Context) error { return errBroken }, nil)
	again := newProcess(t, st).restarted(p)
	again.stopped()
	st.fail(nil, nil)
	if _, stopped := again.Stopped(t.Context(), "other", "e1", p.hook); !stopped {
		t.Error("the record of another client was not read")
	}
}
