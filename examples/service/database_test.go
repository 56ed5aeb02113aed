package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestSQLiteFileIsPrivate: the URLs in the database are credentials, so other users can't read
// its files.
func TestSQLiteFileIsPrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the access list of the directory decides")
	}
	dir := t.TempDir()
	d, err := openDatabase("sqlite:"+filepath.Join(dir, "service.db"), true, newLogger(t.Output()))
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

// TestSQLitePath: the database is in the file that was named, with its settings, and in no other,
// even if the name has characters that separate the parts of a DSN.
func TestSQLitePath(t *testing.T) {
	for _, name := range []string{"a b.db", "a#b.db", "a%23b.db", "a?mode=memory.db", "a&b;c+ü.db", ":memory:"} {
		if runtime.GOOS == "windows" && strings.ContainsAny(name, "?:") {
			continue
		}
		dir := t.TempDir()
		t.Chdir(dir)
		for _, path := range []string{filepath.Join(dir, name), name} {
			d, err := openDatabase("sqlite:"+path, true, newLogger(t.Output()))
			if err != nil {
				t.Fatal(err)
			}
			err = d.migrate(t.Context())
			warnings, checked := d.webhooks.Check(t.Context())
			if err != nil || checked != nil || len(warnings) > 0 {
				t.Errorf("%s: %v, %v, %q", path, err, checked, warnings)
			}
			files, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				if base := strings.TrimSuffix(strings.TrimSuffix(file.Name(), "-wal"), "-shm"); base != name {
					t.Errorf("%s: created %s", path, file.Name())
				}
			}
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v, %v", path, info, err)
			}
			if err := d.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
