package store_test

import (
	"os"
	"path/filepath"
	"testing"

	"example.com/go-webhookcfg/internal/oplog/faultfs"
	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

func TestMemoryConforms(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open:     func(testing.TB) webhookcfg.Store { return store.NewMemory() },
		OpenPeer: func(_ testing.TB, s webhookcfg.Store) webhookcfg.Store { return s },
	})
}

// fileConforms runs the suite for a file. create makes an empty disk, and crash replaces it by what
// a crash leaves.
func fileConforms(t *testing.T, openFile func() (*store.File, error), create, crash func(testing.TB)) {
	open := func(t testing.TB) webhookcfg.Store {
		f, err := openFile()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) webhookcfg.Store {
			create(t)
			return open(t)
		},
		Reopen: func(t testing.TB, s webhookcfg.Store) webhookcfg.Store {
			if err := s.(*store.File).Close(); err != nil {
				t.Fatal(err)
			}
			return open(t)
		},
		Crash: func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store {
			crash(t)
			return open(t)
		},
	})
}

// TestFileConforms uses a disk in memory, whose syncs take no time. A crash loses what was not
// synced.
func TestFileConforms(t *testing.T) {
	var disk *faultfs.FS
	fileConforms(t, func() (*store.File, error) { return store.OpenFS(disk, "webhooks.jsonl", nil) },
		func(testing.TB) { disk = faultfs.New() },
		func(testing.TB) { disk = disk.Crash(faultfs.Nothing) })
}

// TestFileConformsOnDisk uses a real disk. After a crash, a copy of the file is opened.
func TestFileConformsOnDisk(t *testing.T) {
	if !*full {
		t.Skip("syncs a disk thousands of times, so it runs only with -full")
	}
	var path string
	create := func(t testing.TB) { path = filepath.Join(t.TempDir(), "webhooks.jsonl") }
	fileConforms(t, func() (*store.File, error) { return store.OpenFile(path, nil) }, create, func(t testing.TB) {
		written, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		create(t)
		if err := os.WriteFile(path, written, 0o600); err != nil {
			t.Fatal(err)
		}
	})
}
