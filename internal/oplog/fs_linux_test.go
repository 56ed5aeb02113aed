package oplog_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"example.com/go-webhookcfg/internal/oplog"
)

// descriptorsVar is the environment variable that makes this program use up its file
// descriptors.
const descriptorsVar = "WEBHOOKCFG_TEST_DESCRIPTORS"

// TestOutOfDescriptors has a process run out of file descriptors during a compaction.
func TestOutOfDescriptors(t *testing.T) {
	if os.Getenv(descriptorsVar) != "" {
		compactWithoutDescriptors(t)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^TestOutOfDescriptors$")
	child.Env = append(os.Environ(), descriptorsVar+"=1", os.ExpandEnv("GORACE=$GORACE atexit_sleep_ms=0"))
	if output, err := child.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, output)
	}
}

// crowded is a file system that leaves no file descriptor after it created a file.
type crowded struct {
	oplog.FS
	held []*os.File
}

func (c *crowded) Create(name string) (oplog.File, error) {
	file, err := c.FS.Create(name)
	for err == nil {
		var null *os.File
		if null, err = os.Open(os.DevNull); err == nil {
			c.held = append(c.held, null)
		}
	}
	if errors.Is(err, syscall.EMFILE) {
		err = nil
	}
	return file, err
}

func compactWithoutDescriptors(t *testing.T) {
	few := syscall.Rlimit{Cur: 64, Max: 64}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	for _, shared := range []bool{false, true} {
		dir := makeLog(t)
		fsys, err := oplog.OpenDir(dir, shared)
		if err != nil {
			t.Fatal(err)
		}
		full := &crowded{FS: fsys}
		l, err := oplog.Open(full, "log", newModel(), oplog.Options{CompactManually: true})
		if err != nil {
			t.Fatal(err)
		}
		before, err := os.Lstat(filepath.Join(dir, "log"))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Compact(t.Context()); err != nil {
			t.Errorf("Compact: %v", err)
		}
		if len(full.held) == 0 {
			t.Error("there were descriptors left")
		}
		if err := errors.Join(l.Append(t.Context(), unsetAll("acme")), l.Close()); err != nil {
			t.Errorf("a change without descriptors: %v", err)
		}
		for _, file := range full.held {
			file.Close()
		}
		if after, err := os.Lstat(filepath.Join(dir, "log")); err != nil || os.SameFile(before, after) {
			t.Errorf("the file was not replaced: %v", err)
		}
	}
}

// TestReadOnlyFiles reads a file that this user may not write.
func TestReadOnlyFiles(t *testing.T) {
	dir := makeLog(t)
	if err := os.Chmod(filepath.Join(dir, "log"), 0o444); err != nil {
		t.Fatal(err)
	}
	fsys := dirFS(t, dir, true)
	if os.Geteuid() == 0 { // have this thread access files as another user
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer syscall.Setfsuid(0)
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fsys.Open("log"); !errors.Is(err, os.ErrPermission) {
		t.Errorf("Open: %v", err)
	}
	if _, changes, err := oplog.Check(t.Context(), fsys.ReadOnly(), "log", silent, func(oplog.Region) {}); err != nil || changes != 1 {
		t.Errorf("Check: %d changes, %v", changes, err)
	}
}

// TestRefusedNewFileIsRemoved creates a file that comes to belong to another user.
func TestRefusedNewFileIsRemoved(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can create files for other users")
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	fsys := dirFS(t, dir, false)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := syscall.Setfsuid(65534)
	if err == nil {
		_, err = fsys.Create("copy.tmp")
	}
	if err := syscall.Setfsuid(0); err != nil {
		t.Fatal(err)
	}
	if err == nil || !strings.Contains(err.Error(), "belongs to another user") {
		t.Errorf("Create: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "copy.tmp")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the refused file is left behind: %v", err)
	}
}
