package store_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"example.com/go-webhookcfg/store"
)

// fullDirVar is the environment variable that makes this program mount a small file system
// over a directory and fill it.
const fullDirVar = "WEBHOOKCFG_TEST_FULL_DIR"

// cannotMount is its exit code if it is not permitted to mount.
const cannotMount = 77

// TestFullDisk fills a real file system.
func TestFullDisk(t *testing.T) { onSmallDisk(t, "256k", fillDisk) }

// TestHealthOfFullDisk fills a real file system next to the store, which makes no change.
func TestHealthOfFullDisk(t *testing.T) {
	onSmallDisk(t, "2m", func(t *testing.T, dir string) { synctest.Test(t, func(t *testing.T) { followHealth(t, dir) }) })
}

func followHealth(t *testing.T, dir string) {
	file := openFile(t, filepath.Join(dir, "webhooks.jsonl"), nil)
	other := filepath.Join(dir, "other")
	for _, isFull := range []bool{false, true, false, true} {
		if isFull {
			if err := os.WriteFile(other, make([]byte, 1536<<10), 0o600); err != nil {
				t.Fatal(err)
			}
		} else if err := os.Remove(other); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // as long as a result lasts
		err := file.Healthy(t.Context())
		if (err != nil) != isFull || isFull && !strings.Contains(err.Error(), dir) {
			t.Errorf("full: %v, health: %v", isFull, err)
		}
	}
}

// onSmallDisk runs a test in a small file system. The mount exists only in the name spaces of
// a process of its own.
func onSmallDisk(t *testing.T, size string, test func(t *testing.T, dir string)) {
	t.Helper()
	if dir := os.Getenv(fullDirVar); dir != "" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
			fmt.Println("cannot mount:", err)
			os.Exit(cannotMount)
		}
		test(t, dir)
		return
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), fullDirVar+"="+t.TempDir())
	child.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	output, err := child.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() != cannotMount:
		t.Errorf("%v: %s", err, output)
	default:
		t.Skipf("no small file system can be mounted here: %v: %s", err, output)
	}
}

func fillDisk(t *testing.T, dir string) {
	path, other := filepath.Join(dir, "webhooks.jsonl"), filepath.Join(dir, "other")
	if err := os.WriteFile(other, make([]byte, 160<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := store.OpenFile(path, &store.FileOptions{CompactManually: true})
	if err != nil {
		t.Fatal(err)
	}
	made, want := 0, model{}
	for err == nil {
		c := nth("acme", made)
		if err = file.Apply(context.Background(), c); err == nil {
			want.apply(c)
			made++
		}
	}
	if !errors.Is(err, store.ErrReadOnly) || !errors.Is(err, syscall.ENOSPC) || strings.Contains(err.Error(), ".tmp") || made == 0 {
		t.Errorf("after %d changes: %v", made, err)
	}
	if err := file.Err(); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on the full disk, Err returns %v", err)
	}
	if got := observe(file, "acme"); got != want.show("acme") {
		t.Errorf("on the full disk it shows\n%swant\n%s", got, want.show("acme"))
	}
	if err := file.Compact(context.Background()); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a compaction on the full disk: %v", err)
	}
	if err := os.Remove(other); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		c := nth("acme", made)
		want.apply(c)
		if err := file.Apply(context.Background(), c); err != nil || file.Err() != nil {
			t.Errorf("a change once the disk has room: %v, and Err returns %v", err, file.Err())
		}
		if err := file.Compact(context.Background()); err != nil {
			t.Errorf("a compaction once the disk has room: %v", err)
		}
		made++
	}
	if err := file.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if file, err = store.OpenFile(path, nil); err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := observe(file, "acme"); got != want.show("acme") {
		t.Errorf("reopened, it shows\n%swant\n%s", got, want.show("acme"))
	}
	if entries, err := os.ReadDir(dir); err != nil || strings.Contains(fmt.Sprint(entries), ".tmp") {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}
