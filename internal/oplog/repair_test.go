package oplog_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
)

// checkDurable compares the state with the one after a power failure.
func checkDurable(t *testing.T, fs *faultfs.FS, want *model) {
	t.Helper()
	got := newModel()
	openLog(t, fs.Crash(faultfs.Nothing), got)
	if got.String() != want.String() {
		t.Errorf("after a power failure the state is\n%swant\n%s", got, want)
	}
}

// TestFailedSyncFailsThoseThatWait fails the sync of a change while another one waits for
// the next batch.
func TestFailedSyncFailsThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, m := faultfs.New(), newModel()
		l := openLog(t, fs, m)
		fs.Decide(func(c faultfs.Call) faultfs.Outcome {
			if c.Op != faultfs.OpSync {
				return faultfs.Succeed
			}
			time.Sleep(time.Second)
			return faultfs.Fail
		})
		first := appendWithin(t, l, time.Hour, setAll("acme", "https://a.example/"))
		synctest.Wait() // it is being synced
		calls := fs.Calls()
		second := appendWithin(t, l, time.Hour, setAll("other", "https://b.example/"))
		for i, done := range []<-chan error{first, second} {
			if err := <-done; !errors.Is(err, oplog.ErrReadOnly) {
				t.Errorf("change %d: %v", i, err)
			}
		}
		if n := fs.Calls() - calls; n > 0 || m.Len() > 0 {
			t.Errorf("after the failure %d file calls are made, and the state is\n%s", n, m)
		}
		fs.Decide(nil)
	})
}

// TestFailedSyncIsRepaired fails the sync of a change, and the repairs after it. The log must
// not try a change before a repair succeeds, and must not make the failed one afterwards.
func TestFailedSyncIsRepaired(t *testing.T) {
	for _, op := range []faultfs.Op{faultfs.OpSync, faultfs.OpTruncate, faultfs.OpSameFile} {
		for _, outcome := range []faultfs.Outcome{faultfs.Fail, faultfs.FailAfter} {
			synctest.Test(t, func(t *testing.T) {
				fs, m := faultfs.New(), newModel()
				l := openLog(t, fs, m)
				appendAll(t, l, 1)
				before := m.String()
				time.Sleep(time.Second)
				fs.Decide(func(c faultfs.Call) faultfs.Outcome {
					switch {
					case c.Op == op:
						return outcome
					case c.Op == faultfs.OpWrite && op == faultfs.OpTruncate:
						return faultfs.FailHalfway
					}
					return faultfs.Succeed
				})
				if err := l.Append(t.Context(), unsetAll("acme")); !errors.Is(err, oplog.ErrReadOnly) || !errors.Is(err, faultfs.ErrInjected) {
					t.Errorf("%s: the failed change: %v", op, err)
				}
				time.Sleep(time.Minute)
				calls := fs.Calls()
				if err := l.Append(t.Context(), unsetAll("acme")); !errors.Is(err, oplog.ErrReadOnly) || l.Err() == nil {
					t.Errorf("%s: the next change: %v, and %v", op, err, l.Err())
				}
				if n := fs.Calls() - calls; n > 0 {
					t.Errorf("%s: the next change made %d file calls", op, n)
				}
				if m.String() != before {
					t.Errorf("%s: the state is\n%s", op, m)
				}
				fs.Decide(nil)
				time.Sleep(time.Second)
				if err := l.Err(); err != nil {
					t.Errorf("%s: after the repair: %v", op, err)
				}
				checkDurable(t, fs, m)
				if err := l.Append(t.Context(), at(2, setAll("acme", "https://b.example/"))); err != nil {
					t.Errorf("%s: a change after the repair: %v", op, err)
				}
				checkDurable(t, fs, m)
			})
		}
	}
}

// TestRepairWritesTheLastBlock has a failed sync lose records that share a block of the
// disk with the changes that it was for.
func TestRepairWritesTheLastBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, m := faultfs.New(), newModel()
		l := openLog(t, fs, m)
		appendAll(t, l, 100)
		end := bytes.LastIndexByte(fs.ReadFile("log"), '}')
		failOnce(fs, faultfs.OpSync, faultfs.Fail)
		if err := l.Append(t.Context(), unsetAll("acme")); !errors.Is(err, oplog.ErrReadOnly) {
			t.Fatal(err)
		}
		fs.Lose("log", end/(4<<10)*(4<<10), end)
		time.Sleep(time.Second)
		checkDurable(t, fs, m)
	})
}

func TestRepairsAreTriedEverySecondAtMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New()
		l := openLog(t, fs, newModel())
		fs.Decide(func(faultfs.Call) faultfs.Outcome { return faultfs.Fail })
		if err := l.Append(t.Context(), setAll("acme", "https://a.example/")); !errors.Is(err, oplog.ErrReadOnly) {
			t.Fatal(err)
		}
		calls := fs.Calls()
		time.Sleep(time.Minute)
		if n := fs.Calls() - calls; n < 55 || n > 70 {
			t.Errorf("%d file calls in a minute of repairs", n)
		}
	})
}

// TestLogWithoutCallersRecovers fills the disk, and frees it, without another change.
func TestLogWithoutCallersRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New()
		l := openLog(t, fs, newModel())
		fs.Decide(func(c faultfs.Call) faultfs.Outcome {
			if c.Op == faultfs.OpWrite {
				return faultfs.FailHalfway
			}
			return faultfs.Succeed
		})
		if err := l.Append(t.Context(), setAll("acme", "https://a.example/")); !errors.Is(err, oplog.ErrReadOnly) {
			t.Fatal(err)
		}
		size := len(fs.ReadFile("log"))
		time.Sleep(time.Minute)
		if err := l.Err(); !errors.Is(err, oplog.ErrReadOnly) || len(fs.ReadFile("log")) != size {
			t.Errorf("on a full disk: %v, with %d bytes instead of %d", err, len(fs.ReadFile("log")), size)
		}
		fs.Decide(nil)
		time.Sleep(time.Second)
		if err := l.Err(); err != nil {
			t.Errorf("after the disk has room: %v", err)
		}
	})
}

func TestErrAfterClose(t *testing.T) {
	l := openLog(t, faultfs.New(), newModel())
	if err := errors.Join(l.Err(), l.Close()); err != nil {
		t.Error(err)
	}
	if err := l.Err(); !errors.Is(err, oplog.ErrClosed) {
		t.Error(err)
	}
}

// TestOverwrittenOnAFullDisk empties the file while there is no room for another one.
func TestOverwrittenOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, m := faultfs.New(), newModel()
		l := openLog(t, fs, m)
		appendAll(t, l, 9)
		fs.Overwrite("log", nil)
		time.Sleep(time.Second)
		fs.Limit(fs.Used()+256, errors.New("full"))
		for range 3 {
			if err := l.Append(t.Context(), unsetAll("acme")); !errors.Is(err, oplog.ErrReadOnly) {
				t.Errorf("a change: %v", err)
			}
			time.Sleep(time.Minute)
		}
		if err := l.Err(); !errors.Is(err, oplog.ErrReadOnly) || !strings.Contains(err.Error(), "overwrote") {
			t.Errorf("on a full disk: %v", err)
		}
		fs.Limit(0, nil)
		time.Sleep(time.Second)
		if err := l.Err(); err != nil {
			t.Errorf("with room: %v", err)
		}
		checkDurable(t, fs, m)
	})
}

// TestChecksReadLittle counts what a check of a file of 1 MiB reads: the header and what
// was written since the last one, also after an opening and a compaction.
func TestChecksReadLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := faultfs.New()
		l := openLog(t, fs, newModel())
		appendLong(t, l, 100)
		check := func(when string) {
			t.Helper()
			for range 2 {
				time.Sleep(time.Second)
				before := fs.Count(faultfs.OpRead)
				appendAll(t, l, 1)
				if n := fs.Count(faultfs.OpRead) - before; n != 2 {
					t.Errorf("%s, a check reads %d times, want 2", when, n)
				}
			}
		}
		time.Sleep(time.Second)
		appendAll(t, l, 1) // reads all that was written at once
		check("as written")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = openLog(t, fs, newModel())
		check("after an opening")
		if err := l.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		check("after a compaction")
	})
}

// TestOverwrittenDuringACompaction has a change find the file overwritten while a
// compaction, which needs the same temporary file, writes its own.
func TestOverwrittenDuringACompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, m := faultfs.New(), newModel()
		var log bytes.Buffer
		l := openWith(t, fs, m, oplog.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		appendLong(t, l, 100)
		fs.Decide(func(c faultfs.Call) faultfs.Outcome {
			if c.Name == "log.tmp" && c.Op == faultfs.OpWrite {
				time.Sleep(time.Minute)
			}
			return faultfs.Succeed
		})
		var all sync.WaitGroup
		all.Go(func() {
			if err := l.Compact(t.Context()); err == nil {
				t.Error("Compact succeeds")
			}
		})
		time.Sleep(time.Second)
		fs.Overwrite("log", nil)
		if err := l.Append(t.Context(), unsetAll("acme")); !errors.Is(err, oplog.ErrReadOnly) {
			t.Errorf("a change: %v", err)
		}
		time.Sleep(time.Hour)
		all.Wait()
		if err := l.Append(t.Context(), at(1, set("acme", "e1", "https://b.example/"))); err != nil {
			t.Errorf("a change after the repair: %v", err)
		}
		checkDurable(t, fs, m)
		for _, message := range []string{"level=ERROR", "level=WARN msg=\"log rewritten"} {
			if strings.Count(log.String(), message) != 1 {
				t.Errorf("%s is not logged once:\n%s", message, log.String())
			}
		}
		if slices.Contains(fs.Names(), "log.tmp") {
			t.Error("the temporary file is left behind")
		}
	})
}

// TestChangesStopACompaction has a compaction fill the disk.
func TestChangesStopACompaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, m := faultfs.New(), newModel()
		l := openLog(t, fs, m)
		appendLong(t, l, 100)
		var all sync.WaitGroup
		all.Go(func() {
			if err := l.Compact(t.Context()); err == nil || errors.Is(err, oplog.ErrReadOnly) {
				t.Errorf("Compact: %v", err)
			}
		})
		slowly(fs, 10*time.Millisecond)
		time.Sleep(25 * time.Millisecond) // into the third step
		fs.Decide(func(c faultfs.Call) faultfs.Outcome {
			if c.Op == faultfs.OpWrite && c.Name == "log" && slices.Contains(fs.Names(), "log.tmp") {
				return faultfs.FailHalfway
			}
			return faultfs.Succeed
		})
		if err := l.Append(t.Context(), at(2, setAll("acme", "https://b.example/"))); err != nil {
			t.Errorf("a change during the compaction: %v", err)
		}
		all.Wait()
		checkDurable(t, fs, m)
	})
}

// TestLoneChangeDoesNotWaitForCallers counts the yields of the commit loop after a burst,
// when a write takes no time.
func TestLoneChangeDoesNotWaitForCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		yields := 0
		l := openWith(t, faultfs.New(), newModel(), oplog.CountYields(oplog.Options{}, &yields))
		var all sync.WaitGroup
		for i := range 100 {
			all.Go(func() {
				if err := l.Append(t.Context(), set("acme", fmt.Sprint(i), "https://a.example/")); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if err := l.Append(t.Context(), unsetAll("acme")); err != nil {
			t.Fatal(err)
		}
		if yields > 0 {
			t.Errorf("%d yields", yields)
		}
	})
}
