package sqlite_test

import (
	"testing"

	"example.com/go-webhookcfg/internal/integration/linearizable"
)

// TestLinearizable plays on two handles of one file, as two processes have.
func TestLinearizable(t *testing.T) {
	for name, setting := range settings() {
		t.Run(name, func(t *testing.T) {
			linearizable.Check(t, setting, func(t testing.TB) []linearizable.Store {
				path := newPath(t)
				return []linearizable.Store{open(t, path), open(t, path)}
			})
		})
	}
}

// TestTwoFilesAreCaught: were the handles not of one file, it would be noticed.
func TestTwoFilesAreCaught(t *testing.T) {
	for name, setting := range settings() {
		t.Run(name, func(t *testing.T) {
			linearizable.MustFail(t, setting, func(t testing.TB) []linearizable.Store {
				return []linearizable.Store{open(t, newPath(t)), open(t, newPath(t))}
			})
		})
	}
}

// settings are shorter than usual: every change waits for the disk.
func settings() map[string]linearizable.Setting {
	hot, spread := linearizable.Hot(), linearizable.Spread()
	hot.Rounds, spread.Rounds = 20, 8
	return map[string]linearizable.Setting{"hot": hot, "spread": spread}
}
