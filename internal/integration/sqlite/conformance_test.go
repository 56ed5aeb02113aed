package sqlite_test

import (
	"testing"

	"example.com/go-webhookcfg/store/storetest"
	"example.com/go-webhookcfg/webhookcfg"
)

func TestConforms(t *testing.T) {
	var path string
	storetest.Run(t, storetest.Harness{
		Open: func(t testing.TB) webhookcfg.Store {
			path = newPath(t)
			return open(t, path)
		},
		Reopen:  func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store { return open(t, path) },
		Another: func(t testing.TB, _ webhookcfg.Store) webhookcfg.Store { return open(t, path) },
	})
}
