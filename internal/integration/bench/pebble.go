package main

import (
	"context"
	"sync/atomic"

	"example.com/go-webhookcfg/webhookcfg"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// openPebble opens a Pebble store. It shares syncs between callers by itself.
func openPebble(dir string) (*contender, error) {
	fs := &countingFS{FS: vfs.Default}
	db, err := pebble.Open(dir, &pebble.Options{FS: fs, Logger: silence{}})
	if err != nil {
		return nil, err
	}
	commit := func(changes []webhookcfg.Change) error {
		batch := db.NewBatch()
		defer batch.Close()
		for _, c := range changes {
			if err := batch.Set(keyOf(c.Client, c.Scope.Entity()), valueOf(c), nil); err != nil {
				return err
			}
		}
		return batch.Commit(pebble.Sync)
	}
	set := func(_ context.Context, c webhookcfg.Change) error {
		return db.Set(keyOf(c.Client, c.Scope.Entity()), valueOf(c), pebble.Sync)
	}
	return &contender{
		ways: []way{
			{"Pebble, each set synced", set, fs.syncs.Load},
		},
		load: func(n int) error { return commitAll(commit, n) },
		url: func(client, entity string) (string, error) {
			value, closer, err := db.Get(keyOf(client, entity))
			if err != nil {
				return "", err
			}
			defer closer.Close()
			return urlOf(value), nil
		},
		close: db.Close,
	}, nil
}

// silence is a logger that says nothing, but for what ends the program.
type silence struct{}

func (silence) Infof(string, ...any)  {}
func (silence) Errorf(string, ...any) {}

func (silence) Fatalf(format string, args ...any) { pebble.DefaultLogger.Fatalf(format, args...) }

// countingFS counts the syncs of the files that are written.
type countingFS struct {
	vfs.FS
	syncs atomic.Int64
}

func (f *countingFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.counting(f.FS.Create(name, category))
}

func (f *countingFS) ReuseForWrite(from, to string, category vfs.DiskWriteCategory) (vfs.File, error) {
	return f.counting(f.FS.ReuseForWrite(from, to, category))
}

func (f *countingFS) counting(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return countingFile{file, &f.syncs}, nil
}

type countingFile struct {
	vfs.File
	syncs *atomic.Int64
}

func (f countingFile) Sync() error {
	f.syncs.Add(1)
	return f.File.Sync()
}

func (f countingFile) SyncData() error {
	f.syncs.Add(1)
	return f.File.SyncData()
}
