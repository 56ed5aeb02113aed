//go:build unix

package auth_test

import (
	"path/filepath"
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
	if f, err := auth.OpenFile(path, nil); err == nil || f != nil {
		t.Errorf("got %v, %v, want an error", f, err)
	}
}
