//go:build unix

package store_test

import (
	"syscall"
	"testing"
)

// TestMain makes temporary directories writable only by their owner, also where the
// default is a group.
func TestMain(m *testing.M) {
	syscall.Umask(0o022)
	m.Run()
}
