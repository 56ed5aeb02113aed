package faultfs_test

import (
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"testing"

	"example.com/go-webhookcfg/internal/oplog"
	"example.com/go-webhookcfg/internal/oplog/faultfs"
)

// written returns a directory with a file that was synced as "old" and then
// overwritten with "newer", but not synced.
func written(t *testing.T) (*faultfs.FS, oplog.File) {
	t.Helper()
	f := faultfs.New()
	file, err := f.Create("file")
	if err != nil {
		t.Fatal(err)
	}
	write(t, file, "old")
	if err := errors.Join(file.Sync(), f.Sync()); err != nil {
		t.Fatal(err)
	}
	write(t, file, "newer")
	return f, file
}

func write(t *testing.T, file oplog.File, content string) {
	t.Helper()
	if n, err := file.WriteAt([]byte(content), 0); n != len(content) || err != nil {
		t.Fatal(n, err)
	}
}

func check(t *testing.T, f *faultfs.FS, want string) {
	t.Helper()
	if got := string(f.ReadFile("file")); got != want {
		t.Errorf("the file is %q, want %q", got, want)
	}
}

func TestCrashLosesUnsyncedData(t *testing.T) {
	f, file := written(t)
	check(t, f, "newer")
	check(t, f.Crash(faultfs.Nothing), "old")
	check(t, f.Crash(faultfs.Everything), "newer")
	check(t, f.Crash(faultfs.First(2)), "ned")
	check(t, f.Crash(faultfs.First(4)), "newe")
	if size := f.Pending(); size != len("newer") {
		t.Errorf("%d bytes are pending", size)
	}
	seen := map[string]bool{}
	for seed := range uint64(50) {
		seen[string(f.Crash(faultfs.Some(rand.New(rand.NewPCG(seed, 0)))).ReadFile("file"))] = true
	}
	if len(seen) != 3 || !seen["old"] || !seen["old\x00\x00"] || !seen["newer"] {
		t.Errorf("some of it is one of %v", seen)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	check(t, f.Crash(faultfs.Nothing), "newer")
	if err := file.Truncate(1); err != nil {
		t.Fatal(err)
	}
	check(t, f, "n")
	check(t, f.Crash(faultfs.Nothing), "newer")
}

func TestCrashLosesUnsyncedNames(t *testing.T) {
	f, _ := written(t)
	if err := f.Rename("file", "other"); err != nil {
		t.Fatal(err)
	}
	if f.Crash(faultfs.Nothing).ReadFile("other") != nil || f.Crash(faultfs.Everything).ReadFile("file") != nil {
		t.Error("the rename was not what the crash kept or lost")
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	if got := string(f.Crash(faultfs.Nothing).ReadFile("other")); got != "old" {
		t.Errorf("after a sync of the names, the file is %q", got)
	}
}

func TestFailedSyncLosesData(t *testing.T) {
	f, file := written(t)
	f.Decide(func(c faultfs.Call) faultfs.Outcome {
		if c.Op == faultfs.OpSync && f.Count(faultfs.OpSync) == 2 {
			return faultfs.Fail
		}
		return faultfs.Succeed
	})
	if err := file.Sync(); !errors.Is(err, faultfs.ErrInjected) {
		t.Fatal(err)
	}
	if err := file.Sync(); err != nil {
		t.Fatal(err)
	}
	check(t, f, "newer")
	check(t, f.Crash(faultfs.Everything), "old")
}

func TestOutcomes(t *testing.T) {
	for outcome, want := range map[faultfs.Outcome]struct {
		err     error
		content string
	}{
		faultfs.Succeed:     {nil, "newest"},
		faultfs.Fail:        {faultfs.ErrInjected, "newer"},
		faultfs.FailHalfway: {faultfs.ErrInjected, "newer"[:3] + "er"},
		faultfs.FailAfter:   {faultfs.ErrInjected, "newest"},
		faultfs.Pretend:     {nil, "newer"},
		faultfs.Stop:        {faultfs.ErrStopped, "newer"},
	} {
		f, file := written(t)
		f.Decide(func(faultfs.Call) faultfs.Outcome { return outcome })
		if _, err := file.WriteAt([]byte("newest"), 0); !errors.Is(err, want.err) {
			t.Errorf("outcome %d gave %v", outcome, err)
		}
		check(t, f, want.content)
		f.Decide(nil)
		if err := file.Sync(); errors.Is(err, faultfs.ErrStopped) != (outcome == faultfs.Stop) {
			t.Errorf("after outcome %d: %v", outcome, err)
		}
	}
}

func TestNamesAndLocks(t *testing.T) {
	f, file := written(t)
	if _, err := f.Create("file"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("Create: %v", err)
	}
	if _, err := f.Open("other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open: %v", err)
	}
	if err := errors.Join(f.Remove("other"), f.Rename("other", "file")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Remove and Rename: %v", err)
	}
	if n, err := file.ReadAt(make([]byte, 9), 2); n != 3 || !errors.Is(err, io.EOF) {
		t.Errorf("ReadAt: %d, %v", n, err)
	}
	lock, err := f.Lock("lock")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock("lock"); !errors.Is(err, oplog.ErrLocked) {
		t.Errorf("Lock: %v", err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Lock("lock"); err != nil {
		t.Error(err)
	}
	if _, err := f.Restart().Lock("lock"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	if err := lock.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
}
