package storetest_test

import (
	"path/filepath"
	"testing"

	"example.com/go-webhookcfg/store"
	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

// If your store is durable, close it and open it again. Here, Open stores the path in a
// variable.
func ExampleRun_durable() {
	var t *testing.T // the argument of TestFile

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
	})
}

func ExampleBenchmark() {
	var b *testing.B // the argument of BenchmarkMemory

	storetest.Benchmark(b, func(testing.TB) webhookcfg.Store { return store.NewMemory() })
}
