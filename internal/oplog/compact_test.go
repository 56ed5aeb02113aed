package oplog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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

func appendAll(t *testing.T, l *oplog.Log, n int) {
	t.Helper()
	for i := range n {
		if err := l.Append(t.Context(), at(i, set("acme", fmt.Sprint("e", i%10), "https://a.example/"))); err != nil {
			t.Fatal(err)
		}
	}
}

// longURL makes a record of 10 KiB.
var longURL = "https://a.example/" + strings.Repeat("x", 10<<10)

// appendLong sets entities 0 to n-1 to longURL.
func appendLong(t *testing.T, l *oplog.Log, n int) {
	t.Helper()
	for i := range n {
		if err := l.Append(t.Context(), set("acme", fmt.Sprint(i), longURL)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCompactKeepsTheStateAndNothingElse(t *testing.T) {
	fs, m := faultfs.New(), newModel()
	l := openLog(t, fs, m)
	appendAll(t, l, 100)
	for _, c := range []webhookcfg.Change{at(1, setAll("other", "https://b.example/")), at(2, unset("other", "e1")), unsetAll("none")} {
		if err := l.Append(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(fs.ReadFile("log"), []byte("\n")); lines != 2+m.Len() {
		t.Errorf("%d entries have %d lines", m.Len(), lines)
	}
	if slices.Contains(fs.Names(), "log.tmp") {
		t.Error("the temporary file is left behind")
	}
	appendAll(t, l, 5)
	got := newModel()
	openLog(t, fs.Crash(faultfs.Nothing), got)
	if got.String() != m.String() {
		t.Errorf("read back:\n%s\nbut the state is\n%s", got, m)
	}
}

// TestChangesDuringCompaction keeps writers busy while each flush of the compaction is slow,
// so that there's much to catch up with.
func TestChangesDuringCompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, m := faultfs.New(), newModel()
		l := openLog(t, fs, m)
		long := "https://a.example/" + strings.Repeat("x", 2000)
		for i := range 500 {
			if err := l.Append(t.Context(), set("acme", fmt.Sprint(i), long)); err != nil {
				t.Fatal(err)
			}
		}
		fs.Decide(func(c faultfs.Call) faultfs.Outcome {
			switch {
			case c.Name == "log.tmp" && c.Op == faultfs.OpWrite:
				time.Sleep(time.Second)
			case c.Op != faultfs.OpRead:
				time.Sleep(10 * time.Millisecond)
			}
			return faultfs.Succeed
		})
		done := make(chan error)
		go func() { done <- l.Compact(t.Context()) }()
		changes, slowest := 0, time.Duration(0)
		for running := true; running; changes++ {
			started := time.Now()
			c := at(changes, set("acme", fmt.Sprint(changes%700), long))
			if changes%400 == 399 {
				c = setAll("acme", long)
			}
			if err := l.Append(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			slowest = max(slowest, time.Since(started))
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				running = false
			default:
			}
		}
		// A wait covers the flush of the final copy, the header and a few syncs.
		if changes < 200 || slowest > 4*time.Second {
			t.Errorf("%d changes, the slowest took %v", changes, slowest)
		}
		got := newModel()
		openLog(t, fs.Crash(faultfs.Nothing), got)
		if got.String() != m.String() {
			t.Error("the state read back differs")
		}
	})
}

func TestCompactionStartsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New()
		l := openWith(t, fs, newModel(), oplog.Options{})
		for range 100 {
			appendLong(t, l, 10)
			synctest.Wait() // lets a compaction end
		}
		if n := fs.Count(faultfs.OpRename); n < 5 || n > 11 {
			t.Errorf("10 MiB of changes to 100 KiB were compacted %d times", n-1)
		}
	})
}

// TestCopiesPauseWhileThereAreChanges checks how much of the disk a compaction and a backup
// leave to the log's own writes, that they end on a slow disk, and that they don't pause
// while nobody makes a change.
func TestCopiesPauseWhileThereAreChanges(t *testing.T) {
	const busy, idle = true, false
	for _, test := range []struct {
		lasts  time.Duration // of a sync of the copy
		isBusy bool
		rest   time.Duration
	}{
		{time.Millisecond, busy, 20 * time.Millisecond},
		{time.Second, busy, 50 * time.Millisecond},
		{time.Millisecond, idle, 0},
		{time.Second, idle, 0},
	} {
		for name, run := range map[string]func(ctx context.Context, l *oplog.Log, dst *faultfs.FS) error{
			"compaction": func(ctx context.Context, l *oplog.Log, _ *faultfs.FS) error { return l.Compact(ctx) },
			"backup":     func(ctx context.Context, l *oplog.Log, dst *faultfs.FS) error { return l.Backup(ctx, dst, "copy") },
		} {
			synctest.Test(t, func(t *testing.T) {
				fs, dst := faultfs.New(), faultfs.New()
				l := openLog(t, fs, newModel())
				appendLong(t, l, 100)
				syncs, changes := time.Duration(0), make(chan error, 100)
				decide := func(c faultfs.Call) faultfs.Outcome {
					if c.Op == faultfs.OpSync && strings.HasSuffix(c.Name, ".tmp") {
						syncs++
						if test.isBusy {
							go func() { changes <- l.Append(t.Context(), set("acme", "busy", "https://a.example/")) }()
						}
						time.Sleep(test.lasts)
					}
					return faultfs.Succeed
				}
				fs.Decide(decide)
				dst.Decide(decide)
				started := time.Now()
				if err := run(t.Context(), l, dst); err != nil {
					t.Fatal(err)
				}
				took := time.Since(started)
				if test.isBusy {
					for range syncs {
						if err := <-changes; err != nil {
							t.Error(err)
						}
					}
				}
				// The last sync has no pause.
				if syncs < 5 || took != syncs*test.lasts+(syncs-1)*test.rest {
					t.Errorf("%s, busy is %v: %d syncs of %v took %v", name, test.isBusy, syncs, test.lasts, took)
				}
			})
		}
	}
}

// TestCompactionIsNotOutrun makes changes arrive three times as fast as they can be copied.
func TestCompactionIsNotOutrun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const writers, most = 4, 600
		fs, m := faultfs.New(), newModel()
		l := openLog(t, fs, m)
		appendLong(t, l, 13)
		fs.Decide(func(c faultfs.Call) faultfs.Outcome {
			switch {
			case c.Name == "log" && c.Op == faultfs.OpSync:
				time.Sleep(time.Millisecond)
			case c.Name == "log.tmp" && c.Op == faultfs.OpWrite:
				time.Sleep(20 * time.Millisecond)
			}
			return faultfs.Succeed
		})
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for i := 0; ctx.Err() == nil; i++ {
					if i == most {
						t.Error("the changes outran the compaction")
						return
					}
					if err := l.Append(t.Context(), set("acme", fmt.Sprint(w), longURL)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		if err := l.Compact(t.Context()); err != nil {
			t.Errorf("Compact: %v", err)
		}
		stop()
		all.Wait()
		checkDurable(t, fs, m)
	})
}

// TestCompactionIsDue: a compaction starts once more is superseded than live, and at least 1 MiB.
// A record has 10 KiB.
func TestCompactionIsDue(t *testing.T) {
	for name, tt := range map[string]struct {
		options          oplog.Options
		live, superseded int
		want             int
	}{
		"less than live":     {oplog.Options{}, 200, 190, 0},
		"more than live":     {oplog.Options{}, 200, 210, 1},
		"less than 1 MiB":    {oplog.Options{}, 20, 100, 0},
		"more than 1 MiB":    {oplog.Options{}, 20, 110, 1},
		"compacted manually": {oplog.Options{CompactManually: true}, 200, 400, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fs := faultfs.New()
				l := openWith(t, fs, newModel(), tt.options)
				appendLong(t, l, tt.live)
				for done := 0; done < tt.superseded; {
					n := min(tt.live, tt.superseded-done)
					appendLong(t, l, n)
					done += n
				}
				time.Sleep(time.Minute)                                // lets a compaction end
				if n := fs.Count(faultfs.OpRename) - 1; n != tt.want { // one created the file
					t.Errorf("compacted %d times, want %d", n, tt.want)
				}
			})
		})
	}
}

// TestCompactionCountsBytes makes superseded changes that are longer than live ones.
func TestCompactionCountsBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, m := faultfs.New(), newModel()
		l := openWith(t, fs, m, oplog.Options{})
		appendLong(t, l, 400)
		if n := fs.Count(faultfs.OpRename); n > 1 {
			t.Errorf("compacted %d times before anything is superseded", n-1)
		}
		for i := range 390 {
			if err := l.Append(t.Context(), set("acme", fmt.Sprint(i), "https://a.example/")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second) // lets a compaction end
		}
		if size := len(fs.ReadFile("log")); size > 3<<19 {
			t.Errorf("of 4 MiB, almost all of it superseded, %d bytes are left", size)
		}
	})
}

// TestEscapesDoNotRepeatCompactions uses names that take six times their length in the file.
func TestEscapesDoNotRepeatCompactions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New()
		l := openWith(t, fs, newModel(), oplog.Options{})
		for i := range 100 {
			name := fmt.Sprint(i%90, strings.Repeat("\x01", 10<<10))
			if err := l.Append(t.Context(), set("acme", name, "https://a.example/")); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // lets a compaction end
		}
		if n := fs.Count(faultfs.OpRename) - 1; n > 2 {
			t.Errorf("compacted %d times, with little superseded", n)
		}
	})
}

// TestCompactionsGoOnAfterMostIsDropped drops almost everything while a compaction writes it.
func TestCompactionsGoOnAfterMostIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New()
		l := openWith(t, fs, newModel(), oplog.Options{})
		appendLong(t, l, 100)
		slowly(fs, time.Second)
		done := make(chan error)
		go func() { done <- l.Compact(t.Context()) }()
		time.Sleep(3 * time.Second)
		if err := errors.Join(l.Append(t.Context(), setAll("acme", "https://a.example/")), <-done); err != nil {
			t.Fatal(err)
		}
		fs.Decide(nil)
		for i := range 1000 {
			if err := l.Append(t.Context(), set("acme", fmt.Sprint(i%10), longURL)); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute) // lets a compaction end
		}
		if size := len(fs.ReadFile("log")); size > 4<<20 {
			t.Errorf("100 KiB are live, but the file has grown to %d bytes", size)
		}
	})
}

// TestDamageIsNotCopied flips a byte of a change that is appended while the snapshot of a
// compaction or a backup is written.
func TestDamageIsNotCopied(t *testing.T) {
	for name, start := range map[string]func(l *oplog.Log, dst *faultfs.FS) error{
		"compaction": func(l *oplog.Log, _ *faultfs.FS) error { return l.Compact(context.Background()) },
		"backup":     func(l *oplog.Log, dst *faultfs.FS) error { return l.Backup(context.Background(), dst, "copy") },
	} {
		synctest.Test(t, func(t *testing.T) {
			fs, dst := faultfs.New(), faultfs.New()
			l := openLog(t, fs, newModel())
			appendLong(t, l, 100)
			write := func(c faultfs.Call) faultfs.Outcome {
				if c.Op == faultfs.OpWrite && strings.HasSuffix(c.Name, ".tmp") {
					time.Sleep(time.Minute)
				}
				return faultfs.Succeed
			}
			fs.Decide(write)
			dst.Decide(write)
			done := make(chan error, 1)
			go func() { done <- start(l, dst) }()
			synctest.Wait()
			if err := l.Append(t.Context(), setAll("acme", "https://b.example/")); err != nil {
				t.Fatal(err)
			}
			content := fs.ReadFile("log")
			content[bytes.Index(content, []byte("b.example"))]++
			fs.Overwrite("log", content)
			if err := <-done; !errors.Is(err, oplog.ErrDamaged) {
				t.Errorf("%s: %v", name, err)
			}
			if !bytes.Equal(fs.ReadFile("log"), content) || slices.Contains(fs.Names(), "log.tmp") || len(dst.Names()) > 0 {
				t.Errorf("%s: left %q and %q", name, fs.Names(), dst.Names())
			}
		})
	}
}

// TestRenameThatFailsIsNoFailure fails a rename before or after its effect. The log can see
// which it was, and goes on with the file that has its name.
func TestRenameThatFailsIsNoFailure(t *testing.T) {
	for _, outcome := range []faultfs.Outcome{faultfs.Fail, faultfs.FailAfter} {
		fs, m := faultfs.New(), newModel()
		l := openLog(t, fs, m)
		appendAll(t, l, 30)
		failOnce(fs, faultfs.OpRename, outcome)
		if err := l.Compact(t.Context()); (err == nil) != (outcome == faultfs.FailAfter) || errors.Is(err, oplog.ErrReadOnly) {
			t.Errorf("%v: %v", outcome, err)
		}
		appendAll(t, l, 31)
		got := newModel()
		openLog(t, fs.Crash(faultfs.Nothing), got)
		if got.String() != m.String() {
			t.Errorf("%v: read back:\n%s", outcome, got)
		}
		if slices.Contains(fs.Names(), "log.tmp") {
			t.Errorf("%v: the temporary file is left behind", outcome)
		}
	}
}

func TestCompactionEndsWithItsContextAndWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New()
		l := openLog(t, fs, newModel())
		appendLong(t, l, 100)
		slowly(fs, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Compact(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Compact: %v", err)
		}
		var all sync.WaitGroup
		for range 2 { // one runs, the other waits for it
			all.Go(func() {
				if err := l.Compact(t.Context()); !errors.Is(err, oplog.ErrClosed) {
					t.Errorf("Compact: %v", err)
				}
			})
		}
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		calls := fs.Calls()
		all.Wait()
		if late := fs.Calls() - calls; late > 0 {
			t.Errorf("%d file calls after Close", late)
		}
		if slices.Contains(fs.Names(), "log.tmp") {
			t.Error("the temporary file is left behind")
		}
	})
}
