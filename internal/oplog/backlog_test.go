package oplog_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/webhookcfg"
)

// gated is a state that takes no changes while it is shut.
type gated struct {
	*model
	gate chan struct{} // holds a token while it is open
}

func newGated() gated {
	g := gated{newModel(), make(chan struct{}, 1)}
	g.open()
	return g
}

func (g gated) shut() { <-g.gate }
func (g gated) open() { g.gate <- struct{}{} }

func (g gated) Apply(changes []webhookcfg.Change) {
	g.shut()
	defer g.open()
	g.model.Apply(changes)
}

// burst is many changes that are made at once.
type burst struct {
	answered atomic.Int32
	all      sync.WaitGroup
}

const burstSize = 64

func (b *burst) run(t *testing.T, l *oplog.Log, client string) {
	for i := range burstSize {
		b.all.Go(func() {
			if err := l.Append(t.Context(), set(client, fmt.Sprint(i), "https://a.example/")); err != nil {
				t.Error(err)
			}
			b.answered.Add(1)
		})
	}
}

// beginSync has a change be synced for a second, in which others gather.
func beginSync(t *testing.T, fs *faultfs.FS, l *oplog.Log) (answer <-chan error) {
	slowly(fs, time.Second)
	answer = appendWithin(t, l, time.Hour, set("acme", "first", "https://a.example/"))
	synctest.Wait()
	return answer
}

// testBacklog runs a test with a log that has answered a burst of "acme" and a set-all
// of "wide", while its state is shut.
func testBacklog(t *testing.T, test func(t *testing.T, fs *faultfs.FS, l *oplog.Log, g gated)) {
	synctest.Test(t, func(t *testing.T) {
		fs, g := faultfs.New(), newGated()
		l := openLog(t, fs, g)
		first := beginSync(t, fs, l)
		var b burst
		b.run(t, l, "acme")
		wide := appendWithin(t, l, time.Hour, setAll("wide", "https://a.example/"))
		synctest.Wait()
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		g.shut()
		b.all.Wait()
		if err := <-wide; err != nil {
			t.Fatal(err)
		}
		if g.Len() != 1 {
			t.Fatalf("applied while shut:\n%s", g)
		}
		test(t, fs, l, g)
	})
}

const allOfBacklog = 1 + burstSize + 1

// TestBarriers: who reads what was answered waits until it is applied, and nobody else does.
func TestBarriers(t *testing.T) {
	testBacklog(t, func(t *testing.T, _ *faultfs.FS, l *oplog.Log, g gated) {
		var all, passed sync.WaitGroup
		var waited, others atomic.Int32
		wait := func(barrier func()) {
			all.Go(func() {
				barrier()
				waited.Add(1)
			})
		}
		for i := range burstSize {
			wait(func() { l.BarrierFor("acme", fmt.Sprint(i)) })
		}
		wait(func() { l.BarrierFor("wide", "whatever") })
		wait(l.Barrier)
		for i := range 100 {
			passed.Go(func() {
				l.BarrierFor(fmt.Sprint("other", i), "e")
				others.Add(1)
			})
		}
		synctest.Wait()
		// A few others may share a part of a hash.
		if waited.Load() != 0 || others.Load() < 80 {
			t.Errorf("passed while shut: %d who had to wait, %d of 100 others", waited.Load(), others.Load())
		}
		g.open()
		all.Wait()
		passed.Wait()
		if g.Len() != allOfBacklog {
			t.Errorf("%d entries after the barriers", g.Len())
		}
		l.BarrierFor("acme", "0")
	})
}

// TestBacklogIsBounded has bursts come one after the other, none of which is applied.
func TestBacklogIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, g := faultfs.New(), newGated()
		l := openLog(t, fs, g)
		slowly(fs, time.Hour)
		first := appendWithin(t, l, 24*time.Hour, set("acme", "first", "https://a.example/"))
		var bursts [6]burst
		for i := range bursts {
			time.Sleep(time.Minute) // into the sync of the one before
			bursts[i].run(t, l, fmt.Sprint("client", i))
			if i == 0 {
				if err := <-first; err != nil {
					t.Fatal(err)
				}
				g.shut()
				continue
			}
			time.Sleep(time.Hour - time.Minute)
		}
		time.Sleep(24 * time.Hour)
		// One is being applied, two wait, and one has no room to wait.
		for i := range bursts {
			if n, want := bursts[i].answered.Load(), i < 3; (n == burstSize) != want || !want && n != 0 {
				t.Errorf("burst %d: %d changes answered", i, n)
			}
		}
		g.open()
		for i := range bursts {
			bursts[i].all.Wait()
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		got := newModel()
		openLog(t, fs.Crash(faultfs.Nothing), got)
		if g.Len() != 1+len(bursts)*burstSize || got.String() != g.String() {
			t.Errorf("%d entries, and %d read back", g.Len(), got.Len())
		}
	})
}

// TestCompactionOfABacklog begins a compaction when the state lacks what was answered.
func TestCompactionOfABacklog(t *testing.T) {
	testBacklog(t, func(t *testing.T, fs *faultfs.FS, l *oplog.Log, g gated) {
		done := make(chan error)
		go func() { done <- l.Compact(context.Background()) }()
		synctest.Wait()
		g.open()
		if err := <-done; err != nil {
			t.Error(err)
		}
		got := newModel()
		openLog(t, fs.Crash(faultfs.Nothing), got)
		if got.Len() != allOfBacklog {
			t.Errorf("%d entries are left", got.Len())
		}
	})
}

// fed is a state that is never up to date: with each change comes another one.
type fed struct {
	*model
	backlog *oplog.Backlog
}

func (f *fed) Apply(changes []webhookcfg.Change) {
	f.backlog.Add(set("acme", fmt.Sprint("e", f.Len()), "https://a.example/"))
	f.model.Apply(changes)
}

func TestApplyComesToAnEnd(t *testing.T) {
	f := &fed{model: newModel()}
	f.backlog = oplog.NewBacklog(f)
	f.backlog.Add(set("acme", "first", "https://a.example/"))
	for range 10 {
		f.backlog.Apply()
	}
	if f.Len() != 10 {
		t.Errorf("%d changes were applied by 10 calls", f.Len())
	}
}

// TestNothingWaitsForGood leaves a log alone after a burst, or closes it meanwhile.
func TestNothingWaitsForGood(t *testing.T) {
	for name, then := range map[string]func(*oplog.Log) error{
		"left alone": func(*oplog.Log) error { return nil },
		"closed":     (*oplog.Log).Close,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs, m := faultfs.New(), newModel()
				l := openLog(t, fs, m)
				first := beginSync(t, fs, l)
				var b burst
				b.run(t, l, "acme")
				synctest.Wait()
				if err := errors.Join(then(l), <-first); err != nil {
					t.Error(err)
				}
				b.all.Wait()
				synctest.Wait()
				if m.Len() != 1+burstSize {
					t.Errorf("%d entries", m.Len())
				}
			})
		})
	}
}

// TestBacklogIsNotDead: what waits to be applied does not make a compaction due.
func TestBacklogIsNotDead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, g := faultfs.New(), newGated()
		l, err := oplog.Open(fs, "log", g, oplog.Options{})
		if err != nil {
			t.Fatal(err)
		}
		first := beginSync(t, fs, l)
		var all sync.WaitGroup
		long := "https://a.example/" + strings.Repeat("x", 40<<10)
		for i := range 48 { // two groups
			all.Go(func() {
				if err := l.Append(t.Context(), set("acme", fmt.Sprint(i), long)); err != nil {
					t.Error(err)
				}
			})
		}
		if err := <-first; err != nil {
			t.Fatal(err)
		}
		g.shut()
		before := fs.Count(faultfs.OpCreate)
		all.Wait()
		synctest.Wait()
		g.open()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if fs.Count(faultfs.OpCreate) != before {
			t.Error("a log without anything dead was compacted")
		}
	})
}
