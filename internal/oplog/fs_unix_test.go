//go:build unix

package oplog_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain makes temporary directories that only their owner can write to, even where groups
// can by default.
func TestMain(m *testing.M) {
	syscall.Umask(0o022)
	m.Run()
}

func TestPipesInPlaceOfFiles(t *testing.T) {
	for _, name := range []string{"log", "log.lock"} {
		dir := makeLog(t)
		path := filepath.Join(dir, name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Skip("no pipes here: ", err)
		}
		if _, err := openDir(t, dir, false); err == nil || !strings.Contains(err.Error(), name+" is not a regular file") {
			t.Errorf("%s is a pipe: %v", name, err)
		}
	}
}

// TestCloseUnlocks closes a file of which a child process that is being started still has
// a copy of the descriptor.
func TestCloseUnlocks(t *testing.T) {
	fsys := dirFS(t, makeLog(t), false)
	file, err := fsys.Open("log")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := file.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Control(func(fd uintptr) {
		inherited, err := syscall.Dup(int(fd))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = syscall.Close(inherited) })
	}); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := fsys.Open("log")
	if err != nil {
		t.Fatalf("a closed file is locked: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}
