//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package oplog

import (
	"errors"
	"fmt"
	"os"
)

// lockFile refuses: without a lock, two openers would overwrite each other's changes.
func lockFile(*os.File) error {
	return fmt.Errorf("no way to lock a file on this system: %w", errors.ErrUnsupported)
}
