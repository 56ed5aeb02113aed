package oplog_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/webhookcfg"
)

// checkBackup opens a backup as it is after a power failure.
func checkBackup(t *testing.T, dst *faultfs.FS, want string) {
	t.Helper()
	if names := dst.Names(); !slices.Equal(names, []string{"copy"}) {
		t.Errorf("the directory has %v", names)
	}
	content := dst.Crash(faultfs.Nothing).ReadFile("copy")
	if got := open(t, content, oplog.Options{}); got.err != nil || got.state != want || !slices.Equal(got.content, content) {
		t.Errorf("opened: %v\n%s\nwant\n%s", got.err, got.state, want)
	}
	for length := max(1, len(content)-300); length < len(content); length++ {
		if got := open(t, content[:length], oplog.Options{}); got.err == nil {
			t.Fatalf("cut to %d of %d bytes, the copy opens", length, len(content))
		}
	}
}

func TestBackup(t *testing.T) {
	fs, m := faultfs.New(), newModel()
	l := openLog(t, fs, m)
	for range 2 {
		for _, step := range []func() error{
			func() error { return nil },
			func() error { appendAll(t, l, 50); return nil },
			func() error { return l.Compact(t.Context()) },
			func() error { return l.Append(t.Context(), unsetAll("acme")) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
			dst := faultfs.New()
			if err := l.Backup(t.Context(), dst, "copy"); err != nil {
				t.Fatal(err)
			}
			checkBackup(t, dst, m.String())
		}
	}
}

// hooked is a state with a function that is called after each part that is applied, and
// one in the middle of a snapshot.
type hooked struct {
	*model
	applied, midway func()
}

func (h *hooked) ApplyAll(changes []webhookcfg.Change) {
	h.model.ApplyAll(changes)
	h.applied()
}

func (h *hooked) Snapshot() iter.Seq[webhookcfg.Change] {
	return func(yield func(webhookcfg.Change) bool) {
		for n, c := range slices.Collect(h.model.Snapshot()) {
			if n == 1 {
				h.midway()
				// What follows is shown as it is now.
				later := slices.Collect(h.model.Snapshot())
				for _, c := range later[1:] {
					yield(c)
				}
				return
			}
			yield(c)
		}
	}
}

// TestBackupIsAStateBetweenBatches applies a change, but doesn't acknowledge it, while the
// snapshot is read. The copy must have both of its effects or none.
func TestBackupIsAStateBetweenBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &hooked{model: newModel(), applied: func() {}, midway: func() {}}
		l := openLog(t, faultfs.New(), h)
		for _, c := range []webhookcfg.Change{set("acme", "a", "https://a.example/1"), set("acme", "b", "https://a.example/1")} {
			if err := l.Append(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		applied, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		h.applied = func() { close(applied); h.applied = func() {}; <-release }
		h.midway = func() {
			h.midway = func() {}
			go func() { done <- l.Append(t.Context(), setAll("acme", "https://a.example/2")) }()
			<-applied
		}
		dst, backup := faultfs.New(), make(chan error, 1)
		go func() { backup <- l.Backup(t.Context(), dst, "copy") }()
		synctest.Wait()
		close(release)
		if err := errors.Join(<-done, <-backup); err != nil {
			t.Fatal(err)
		}
		checkBackup(t, dst, h.String())
	})
}

func TestBackupEndsWithItsContextAndWithClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs, dst := faultfs.New(), faultfs.New()
		l := openLog(t, fs, newModel())
		appendLong(t, l, 100)
		slowly(dst, time.Minute)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := l.Backup(ctx, dst, "copy"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Backup: %v", err)
		}
		results := make(chan error)
		for n := range 2 { // one runs, the other waits for it
			go func() { results <- l.Backup(t.Context(), dst, fmt.Sprint("copy", n)) }()
		}
		synctest.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		for range 2 {
			if err := <-results; !errors.Is(err, oplog.ErrClosed) {
				t.Errorf("Backup: %v", err)
			}
		}
		if err := l.Backup(t.Context(), dst, "copy"); !errors.Is(err, oplog.ErrClosed) {
			t.Errorf("Backup after Close: %v", err)
		}
		if names := dst.Names(); len(names) > 0 {
			t.Errorf("left behind: %v", names)
		}
	})
}

// TestBackupOfALogThatCannotBeWritten: you can still save the changes to another disk.
func TestBackupOfALogThatCannotBeWritten(t *testing.T) {
	fs, dst, m := faultfs.New(), faultfs.New(), newModel()
	l := openLog(t, fs, m)
	appendAll(t, l, 20)
	fs.Decide(func(c faultfs.Call) faultfs.Outcome {
		if c.Op == faultfs.OpSync || c.Op == faultfs.OpTruncate {
			return faultfs.Fail
		}
		return faultfs.Succeed
	})
	if err := l.Append(t.Context(), unsetAll("acme")); !errors.Is(err, oplog.ErrReadOnly) {
		t.Fatal(err)
	}
	if err := l.Backup(t.Context(), dst, "copy"); err != nil {
		t.Fatal(err)
	}
	checkBackup(t, dst, m.String())
}

// TestCopiesWaitForARepair: while it's unknown which of two files is the log, no offset in it
// is known either.
func TestCopiesWaitForARepair(t *testing.T) {
	fs, dst, m := faultfs.New(), faultfs.New(), newModel()
	l := openLog(t, fs, m)
	appendAll(t, l, 20)
	var isRenamed atomic.Bool
	fs.Decide(func(c faultfs.Call) faultfs.Outcome {
		if c.Op == faultfs.OpRename {
			isRenamed.Store(true)
			return faultfs.FailAfter
		}
		if c.Op == faultfs.OpSameFile && c.Name == "log" && isRenamed.Load() {
			return faultfs.Fail
		}
		return faultfs.Succeed
	})
	for name, err := range map[string]error{
		"the compaction": l.Compact(t.Context()),
		"another one":    l.Compact(t.Context()),
		"a backup":       l.Backup(t.Context(), dst, "copy"),
	} {
		if !errors.Is(err, oplog.ErrReadOnly) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := fs.Count(faultfs.OpCreate); n != 3 { // the lock, the log and one compaction
		t.Errorf("%d files were created", n)
	}
}
