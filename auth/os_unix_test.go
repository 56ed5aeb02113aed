//go:build unix

package auth_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"example.com/go-webhookcfg/auth"
)

// TestFileIsNoPipe: opening a pipe without a writer would block.
func TestFileIsNoPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := auth.OpenFile(path, nil); err == nil || f != nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v, %v, want an error", f, err)
	}
}

// TestFileOwner: a file's owner can change its permissions. So a file of another user is
// refused, unless that's root or your platform provides the file.
func TestFileOwner(t *testing.T) {
	path := writeFile(t, sha256Line("c", "s"))
	if err := os.Chown(path, 12345, 12345); err != nil {
		t.Skip("only root can give a file to another user: ", err)
	}
	if f, err := auth.OpenFile(path, nil); err == nil || f != nil || !strings.Contains(err.Error(), "owned") {
		t.Errorf("got %v, %v, want an error", f, err)
	}
	mustSignIn(t, mustOpen(t, path, &auth.FileOptions{AllowReadable: true}), "c", "s", "c")
}
