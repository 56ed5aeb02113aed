package store_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/go-webhookcfg/store"
)

// TestDirectoriesAreClosed: a service that makes backups all the time doesn't run out of
// descriptors.
func TestDirectoriesAreClosed(t *testing.T) {
	path, _ := writeStore(t, 3)
	dir := t.TempDir()
	backup, fresh := filepath.Join(dir, "backup"), filepath.Join(dir, "fresh")
	if err := openFile(t, path, nil).Backup(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	if _, err := store.CheckFile(t.Context(), backup, nil); err != nil {
		t.Error(err)
	}
	if _, err := store.SalvageFile(t.Context(), backup, fresh, nil); err != nil {
		t.Error(err)
	}
	open, err := filepath.Glob("/proc/self/fd/*")
	if err != nil || len(open) == 0 {
		t.Fatal(open, err)
	}
	for _, descriptor := range open {
		if target, err := os.Readlink(descriptor); err == nil && strings.HasPrefix(target, dir) {
			t.Errorf("%s is still open", target)
		}
	}
}
