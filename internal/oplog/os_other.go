//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package oplog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lockFile returns an error: without a lock, two openers would overwrite each other's
// changes.
func lockFile(*os.File) error {
	return fmt.Errorf("file locks on this system: %w", errors.ErrUnsupported)
}

func unlockFile(*os.File) error { return nil }

// checkDir returns nil: access is up to the access control list of the directory, which a
// file mode does not show.
func checkDir(string, fs.FileInfo) error { return nil }

func checkPrivate(fs.FileInfo) error { return nil }

// syncDir does nothing: the system cannot sync a directory, and journals its names.
func syncDir(*os.File) error { return nil }
