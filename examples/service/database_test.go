package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestSQLiteFileIsPrivate: the URLs in the database are credentials, so other users can't read
// its files.
func TestSQLiteFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the access list of the directory decides")
	}
	dir := t.TempDir()
	d, err := openDatabase("sqlite:"+filepath.Join(dir, "service.db"), newLogger(t.Output()))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	if err := d.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatalf("files %v, %v", files, err)
	}
	for _, file := range files {
		if info, err := file.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info, err)
		}
	}
}
