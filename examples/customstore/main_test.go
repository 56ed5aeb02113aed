package main

import (
	"testing"

	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

func TestStore(t *testing.T) {
	storetest.Run(t, storetest.Harness{
		Open: func(testing.TB) webhookcfg.Store { return new(Store) },
	})
}

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, func(testing.TB) webhookcfg.Store { return new(Store) })
}
