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

// TestFileConforms uses a disk in memory, whose syncs take no time, and TestFileConformsOnDisk a
// real one. A crash loses what was not synced, or a copy of the file is opened.
func TestFileConforms(t *testing.T) {
	var disk *faultfs.FS
	open := func(t testing.TB) webhookcfg.Store {
		f, err := store.OpenFS(disk, "webhooks.jsonl", nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) webhookcfg.Store {
			disk = faultfs.New()
			return open(t)
		},
		Reopen: func(t testing.TB, s webhookcfg.Store) webhookcfg.Store {
			if err := s.(*store.File).Close(); err != nil {
				t.Fatal(err)
			}
			return open(t)
		},
		Crash: func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store {
			disk = disk.Crash(faultfs.Nothing)
			return open(t)
		},
	})
}

func TestFileConformsOnDisk(t *testing.T) {
	if !*full {
		t.Skip("syncs a disk thousands of times, so it runs only with -full")
	}
	var path string
	open := func(t testing.TB) webhookcfg.Store {
		f, err := store.OpenFile(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) webhookcfg.Store {
			path = filepath.Join(t.TempDir(), "webhooks.jsonl")
			return open(t)
		},
		Reopen: func(t testing.TB, s webhookcfg.Store) webhookcfg.Store {
			if err := s.(*store.File).Close(); err != nil {
				t.Fatal(err)
			}
			return open(t)
		},
		Crash: func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store {
			written, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			path = filepath.Join(t.TempDir(), "webhooks.jsonl")
			if err := os.WriteFile(path, written, 0o600); err != nil {
				t.Fatal(err)
			}
			return open(t)
		},
	})
}
