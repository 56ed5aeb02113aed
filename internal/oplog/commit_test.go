package oplog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/webhookcfg"
)

// openLog opens a log that doesn't compact itself, and closes it when the test ends.
func openLog(t *testing.T, fs oplog.FS, state oplog.State) *oplog.Log {
	t.Helper()
	return openWith(t, fs, state, oplog.Options{CompactManually: true})
}

// openWith opens a log, and closes it when the test ends.
func openWith(t *testing.T, fs oplog.FS, state oplog.State, o oplog.Options) *oplog.Log {
	t.Helper()
	l, err := oplog.Open(fs, "log", state, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil && !errors.Is(err, oplog.ErrClosed) && !errors.Is(err, oplog.ErrReadOnly) {
			t.Error(err)
		}
	})
	return l
}

// slowly makes each sync take this long.
func slowly(fs *faultfs.FS, sync time.Duration) {
	fs.Decide(func(c faultfs.Call) faultfs.Outcome {
		if c.Op == faultfs.OpSync {
			time.Sleep(sync)
		}
		return faultfs.Succeed
	})
}

func TestAppendIsDurableWhenItReturns(t *testing.T) {
	fs := faultfs.New()
	l := openLog(t, fs, newModel())
	want := newModel()
	for i := range 20 {
		c := at(i, set("acme", fmt.Sprint("e", i), "https://a.example/"))
		if err := l.Append(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		want.ApplyAll([]webhookcfg.Change{c})
		got := newModel()
		openLog(t, fs.Crash(faultfs.Nothing), got)
		if got.String() != want.String() {
			t.Fatalf("a crash after change %d left\n%s", i, got)
		}
	}
}

// TestAppendPreallocates counts how often the file is extended, which makes a sync slower.
func TestAppendPreallocates(t *testing.T) {
	fs := faultfs.New()
	l := openLog(t, fs, newModel())
	size, grown := 0, 0
	for i := range 2000 {
		if err := l.Append(t.Context(), at(i, set("acme", fmt.Sprint(i), "https://a.example/"))); err != nil {
			t.Fatal(err)
		}
		if i%20 > 0 {
			continue // reading it copies all of it
		}
		content := fs.ReadFile("log")
		if len(content) != size {
			size, grown = len(content), grown+1
		}
		if blanks := bytes.Count(content, []byte("\n")) - (2 + i + 1); blanks > 256<<10 { // the rest are the ends of the lines
			t.Fatalf("%d preallocated bytes", blanks)
		}
	}
	if grown < 3 || grown > 10 {
		t.Errorf("2000 changes, %d bytes, extended the file %d times", size, grown)
	}
}

func TestWritersShareSyncs(t *testing.T) {
	// With more, a busy machine can stop the thread that some of the writers run on, and the
	// commit loop doesn't wait long for them.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for _, writers := range []int{1, 8, 64, 256} {
		synctest.Test(t, func(t *testing.T) {
			const each = 20
			fs, m := faultfs.New(), newModel()
			l := openLog(t, fs, m)
			slowly(fs, time.Millisecond)
			before, started := fs.Count(faultfs.OpSync), time.Now()
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for i := range each {
						if err := l.Append(t.Context(), set(fmt.Sprint(w), fmt.Sprint(i), "https://a.example/")); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			syncs := fs.Count(faultfs.OpSync) - before
			limit := each
			if writers > 1 {
				limit = 38 // 0.03 for each change of 64 writers
			}
			if syncs < each || syncs > limit {
				t.Errorf("%d writers took %d syncs to make %d changes each", writers, syncs, each)
			}
			if waited := time.Since(started); waited != time.Duration(syncs)*time.Millisecond {
				t.Errorf("%d writers waited %v for %d syncs of 1ms", writers, waited, syncs)
			}
			if m.Len() != writers*each {
				t.Errorf("%d writers left %d entries", writers, m.Len())
			}
		})
	}
}

// TestCallersReturnWhileASyncHangs cancels a change that is being written and one that
// is pending.
func TestCallersReturnWhileASyncHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, m := faultfs.New(), newModel()
		l := openLog(t, fs, m)
		slowly(fs, time.Hour)
		started := time.Now()
		written := appendWithin(t, l, time.Second, set("acme", "written", "https://a.example/"))
		synctest.Wait()
		pending := appendWithin(t, l, time.Minute, set("acme", "pending", "https://a.example/"))
		lasting := appendWithin(t, l, 24*time.Hour, set("acme", "lasting", "https://a.example/"))
		if err := <-written; !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != time.Second {
			t.Errorf("returned after %v with %v", time.Since(started), err)
		}
		if err := <-pending; !errors.Is(err, context.DeadlineExceeded) || time.Since(started) != time.Minute {
			t.Errorf("returned after %v with %v", time.Since(started), err)
		}
		if got := m.String(); got != "" {
			t.Errorf("visible before it was durable:\n%s", got)
		}
		if err := <-lasting; err != nil {
			t.Error(err)
		}
		if got := m.String(); !strings.Contains(got, "written") || strings.Contains(got, "pending") || !strings.Contains(got, "lasting") {
			t.Errorf("the final state:\n%s", got)
		}
	})
}

func appendWithin(t *testing.T, l *oplog.Log, d time.Duration, c webhookcfg.Change) <-chan error {
	result := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		result <- l.Append(ctx, c)
	}()
	return result
}

// TestAppendReturnsAfterApplication lets many callers share a batch, and every third of them
// withdraws. When a caller returns, its change must be applied, no matter where it is in the
// batch.
func TestAppendReturnsAfterApplication(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 200
		fs, m := faultfs.New(), newModel()
		l := openLog(t, fs, m)
		slowly(fs, time.Hour)
		before := fs.Count(faultfs.OpSync)
		first := appendWithin(t, l, 24*time.Hour, set("acme", "first", "https://a.example/"))
		synctest.Wait()
		var all sync.WaitGroup
		for i := range callers {
			all.Go(func() {
				patience, name := 24*time.Hour, fmt.Sprintf("entity-%03d", i)
				if i%3 == 0 {
					patience = time.Minute
				}
				err := <-appendWithin(t, l, patience, set("acme", name, "https://a.example/"))
				if isApplied := strings.Contains(m.String(), name); isApplied != (err == nil) || isApplied != (i%3 != 0) {
					t.Errorf("%s: returned %v, applied: %t", name, err, isApplied)
				}
			})
		}
		all.Wait()
		if err := <-first; err != nil {
			t.Error(err)
		}
		if syncs := fs.Count(faultfs.OpSync) - before; m.Len() != 1+callers-(callers+2)/3 || syncs != 2 {
			t.Errorf("%d entries after %d syncs", m.Len(), syncs)
		}
	})
}

// batches records how many changes are applied at a time.
type batches struct {
	*model
	longest int
}

func (b *batches) ApplyAll(changes []webhookcfg.Change) {
	b.longest = max(b.longest, len(changes))
	b.model.ApplyAll(changes)
}

// TestLargeBatchIsAppliedInParts: readers of the state don't wait for a whole batch.
func TestLargeBatchIsAppliedInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, b := faultfs.New(), &batches{model: newModel()}
		l := openLog(t, fs, b)
		slowly(fs, time.Second)
		first := appendWithin(t, l, time.Hour, set("acme", "first", "https://a.example/"))
		synctest.Wait()
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if err := l.Append(t.Context(), set("acme", fmt.Sprint(i), "https://a.example/")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := <-first; err != nil {
			t.Error(err)
		}
		if b.Len() != 101 || b.longest != oplog.ApplyStep {
			t.Errorf("%d entries, up to %d applied at a time", b.Len(), b.longest)
		}
	})
}

// TestLateWithdrawal withdraws a change from a batch that is done. That must not withdraw a
// change of a later batch, which reuses the space.
func TestLateWithdrawal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, m := faultfs.New(), newModel()
		l := openLog(t, fs, m)
		slowly(fs, time.Second)
		withdraw, done, err := oplog.Join(t.Context(), l, set("acme", "early", "https://a.example/"))
		if err != nil {
			t.Fatal(err)
		}
		<-done
		written := appendWithin(t, l, time.Hour, set("acme", "written", "https://a.example/"))
		synctest.Wait()
		pending := appendWithin(t, l, time.Hour, set("acme", "pending", "https://a.example/"))
		synctest.Wait()
		withdraw()
		if err := errors.Join(<-written, <-pending); err != nil {
			t.Error(err)
		}
		if m.Len() != 3 {
			t.Errorf("left:\n%s", m)
		}
	})
}

// TestBatchesWithdrawnCompletely withdraws all changes of several batches in a row.
func TestBatchesWithdrawnCompletely(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, m := faultfs.New(), newModel()
		l := openLog(t, fs, m)
		slowly(fs, time.Hour)
		for i := range 10 {
			written := appendWithin(t, l, 24*time.Hour, set("acme", fmt.Sprint("written", i), "https://a.example/"))
			synctest.Wait()
			withdrawn := appendWithin(t, l, time.Minute, set("acme", "withdrawn", "https://a.example/"))
			if err := <-withdrawn; !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("withdrawn: %v", err)
			}
			if err := <-written; err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if m.Len() != 10 {
			t.Errorf("left:\n%s", m)
		}
	})
}

// TestPendingIsBounded lets callers come and go while a sync hangs. A batch can't exceed 1
// MiB, and shouldn't be much shorter while callers wait.
func TestPendingIsBounded(t *testing.T) {
	sizes := map[int]int{40: 60 << 10, 1_000: 1200}
	if *full {
		sizes = map[int]int{100: 60 << 10, 8_000: 1} // takes the race detector a quarter of a gigabyte
	}
	for callers, length := range sizes {
		synctest.Test(t, func(t *testing.T) {
			fs, m := faultfs.New(), newModel()
			l := openLog(t, fs, m)
			slowly(fs, time.Hour)
			url := "https://a.example/" + strings.Repeat("x", length)
			var all sync.WaitGroup
			add := func(name string) {
				all.Go(func() {
					if err := l.Append(t.Context(), set("acme", name, url)); err != nil {
						t.Error(err)
					}
				})
			}
			add("first")
			synctest.Wait()
			for i := range callers {
				add(fmt.Sprint(i))
			}
			all.Wait()
			if m.Len() != 1+callers {
				t.Errorf("%d entries", m.Len())
			}
			lengths := map[string]int{} // of the lines of each batch, which have its offset
			for line := range bytes.Lines(fs.ReadFile("log")) {
				_, offset, _ := bytes.Cut(line, []byte(`"synced":`))
				offset, _, _ = bytes.Cut(offset, []byte(","))
				lengths[string(offset)] += len(line)
			}
			if most := slices.Max(slices.Collect(maps.Values(lengths))); most > 1<<20 || most < 8<<20/10 {
				t.Errorf("with changes of %d bytes, a batch has %d bytes", length, most)
			}
		})
	}
}

func TestAppendWithAnEndedContext(t *testing.T) {
	m := newModel()
	l := openLog(t, faultfs.New(), m)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Append(ctx, unsetAll("acme")); !errors.Is(err, context.Canceled) {
		t.Errorf("Append: %v", err)
	}
	if err := l.Compact(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Compact: %v", err)
	}
}

func TestCloseWritesPendingChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New()
		l := openLog(t, fs, newModel())
		slowly(fs, time.Second)
		var results []<-chan error
		for i := range 3 {
			results = append(results, appendWithin(t, l, time.Hour, set("acme", fmt.Sprint(i), "https://a.example/")))
			synctest.Wait()
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for _, result := range results {
			if err := <-result; err != nil {
				t.Error(err)
			}
		}
		if bytes.HasSuffix(fs.ReadFile("log"), []byte("\n\n")) {
			t.Error("the closed file has preallocated space")
		}
		got := newModel()
		openLog(t, fs.Crash(faultfs.Nothing), got)
		if got.Len() != 3 {
			t.Errorf("left:\n%s", got)
		}
	})
}

func TestCallsAfterClose(t *testing.T) {
	l := openLog(t, faultfs.New(), newModel())
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"Append":  l.Append(t.Context(), unsetAll("acme")),
		"Compact": l.Compact(t.Context()),
		"Close":   l.Close(),
	} {
		if !errors.Is(err, oplog.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// failCall makes call n fail, and returns a call that is that one once it was made.
func failCall(fs *faultfs.FS, n int, outcome faultfs.Outcome) *faultfs.Call {
	var failed faultfs.Call
	fs.Decide(func(c faultfs.Call) faultfs.Outcome {
		if c.N != n {
			return faultfs.Succeed
		}
		failed = c
		return outcome
	})
	return &failed
}

// failOnce makes the next call of a kind fail.
func failOnce(fs *faultfs.FS, op faultfs.Op, outcome faultfs.Outcome) {
	var once sync.Once
	fs.Decide(func(c faultfs.Call) (o faultfs.Outcome) {
		if c.Op == op {
			once.Do(func() { o = outcome })
		}
		return o
	})
}
