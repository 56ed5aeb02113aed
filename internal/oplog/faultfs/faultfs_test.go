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
			t.Errorf("outcome %v gave %v", outcome, err)
		}
		check(t, f, want.content)
		f.Decide(nil)
		if err := file.Sync(); errors.Is(err, faultfs.ErrStopped) != (outcome == faultfs.Stop) {
			t.Errorf("after outcome %v: %v", outcome, err)
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
	if err := errors.Join(f.Rename("file", "other"), f.Rename("other", "file")); err != nil {
		t.Fatal(err)
	}
	f.Link("file", "link")
	for _, name := range []string{"file", "link"} {
		if _, err := f.Open(name); !errors.Is(err, oplog.ErrLocked) {
			t.Errorf("Open of %s, which is open: %v", name, err)
		}
		if _, err := f.Restart().Open(name); err != nil {
			t.Errorf("after a restart: %v", err)
		}
		if is, err := f.SameFile(name, file); !is || err != nil {
			t.Errorf("%s is another file: %v", name, err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := f.Open("link")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("Close: %v", err)
	}
	if _, err := f.Open("file"); !errors.Is(err, oplog.ErrLocked) {
		t.Errorf("Open after a second Close: %v", err)
	}
	if err := f.Remove("link"); err != nil {
		t.Fatal(err)
	}
	if is, err := f.SameFile("link", again); is || err != nil {
		t.Errorf("a removed name leads to the file: %v", err)
	}
	f.Decide(func(faultfs.Call) faultfs.Outcome { return faultfs.Pretend })
	if is, err := f.SameFile("link", again); !is || err != nil {
		t.Errorf("it was only pretended: %t, %v", is, err)
	}
}

func TestFailWith(t *testing.T) {
	f, file := written(t)
	f.Decide(func(faultfs.Call) faultfs.Outcome { return faultfs.FailAfter.With(io.ErrShortWrite) })
	_, err := file.WriteAt([]byte("newest"), 0)
	if !errors.Is(err, faultfs.ErrInjected) || !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
	check(t, f, "newest")
}

// TestFullDisk writes to a disk of four sectors of 64 bytes.
func TestFullDisk(t *testing.T) {
	full := errors.New("full")
	f := faultfs.New()
	f.Limit(4*64, full)
	write := func(file oplog.File, offset int64, size, want int, wantErr error) {
		t.Helper()
		if n, err := file.WriteAt(make([]byte, size), offset); n != want || !errors.Is(err, wantErr) {
			t.Errorf("%d of %d bytes at %d were written: %v", n, size, offset, err)
		}
	}
	first, err1 := f.Create("first")
	second, err2 := f.Create("second")
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	write(first, 0, 100, 100, nil)            // sectors 0 and 1
	write(first, 100, 20, 20, nil)            // within the latter
	write(first, 3*64, 10, 10, nil)           // sector 3, behind a hole
	write(second, 10, 100, 54, full)          // what fits
	write(second, 64, 1, 0, full)             // nothing fits
	write(first, 0, 300, 128, full)           // the hole does not fit, what exists does
	if err := first.Truncate(1); err != nil { // frees sectors 1 and 3
		t.Fatal(err)
	}
	write(second, 64, 300, 128, full)
	if err := f.Remove("second"); err != nil {
		t.Fatal(err)
	}
	write(first, 64, 10, 0, full) // an open file keeps its space
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}
	if used := f.Used(); used != 64 {
		t.Errorf("%d bytes are used", used)
	}
	if used := f.Crash(faultfs.Everything).Used(); used != 64 {
		t.Errorf("%d bytes are used after a crash", used)
	}
	write(first, 64, 10, 10, nil)
	f.Limit(0, nil)
	write(first, 64, 1000, 1000, nil)
}
