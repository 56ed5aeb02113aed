//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func ownerOf(t *testing.T, path string) [2]uint32 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	stat := info.Sys().(*syscall.Stat_t)
	return [2]uint32{stat.Uid, stat.Gid}
}

// TestKeepsOwner: if root runs the command, the file still belongs to the service's user.
func TestKeepsOwner(t *testing.T) {
	f := newFixture(t)
	f.must("add", "acme")
	if err := os.Chown(f.path, 12345, 54321); err != nil {
		t.Skip("only root can give a file to another user: ", err)
	}
	for _, args := range [][]string{{"rotate", "acme"}, {"list"}, {"retire", "acme"}} {
		f.must(args...)
		if got := ownerOf(t, f.path); got != [2]uint32{12345, 54321} {
			t.Errorf("%v: the file belongs to %v", args, got)
		}
	}
}

// TestRefusesOtherOwner: if you aren't root, you can't keep the file's owner, so the command
// doesn't change the file.
func TestRefusesOtherOwner(t *testing.T) {
	if os.Getuid() == 0 {
		runUnprivileged(t)
		return
	}
	f := fixture{t, os.Getenv("CREDENTIAL_FILE")}
	if f.path == "" {
		t.Skip("only root can run this test as another user")
	}
	if _, err := f.run("", "-shared", "rotate", "acme"); err == nil || !strings.Contains(err.Error(), "run the command as its owner") {
		t.Errorf("got %v", err)
	}
	if entries, _ := os.ReadDir(filepath.Dir(f.path)); len(entries) != 1 || ownerOf(t, f.path) != [2]uint32{0, 0} {
		t.Errorf("left %v, owned by %v", entries, ownerOf(t, f.path))
	}
}

// runUnprivileged runs a test in another process, as a user that can read the credential
// file and write to its directory.
func runUnprivileged(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "credential") // the parents of t.TempDir are private
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	f := fixture{t, filepath.Join(dir, "shared", "credentials")}
	program := filepath.Join(dir, "test")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.WriteFile(program, code, 0o755),
		os.Mkdir(filepath.Dir(f.path), 0o700),
		os.Chmod(program, 0o755), // whatever the umask
		os.Chmod(dir, 0o755),
		os.Chmod(filepath.Dir(f.path), 0o777),
	); err != nil {
		t.Fatal(err)
	}
	f.must("add", "acme")
	if err := os.Chmod(f.path, 0o644); err != nil {
		t.Fatal(err)
	}
	run := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$", "-test.v")
	run.Dir = dir
	run.Env = append(os.Environ(), "CREDENTIAL_FILE="+f.path)
	run.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 54321}}
	if out, err := run.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Errorf("as another user: %v\n%s", err, out)
	}
}
