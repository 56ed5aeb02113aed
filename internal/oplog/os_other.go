//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package oplog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lockFile returns an error. Without a lock, two openers would overwrite each other's
// changes.
func lockFile(*os.File) error {
	return fmt.Errorf("file locks on this system: %w", errors.ErrUnsupported)
}

func unlockFile(*os.File) error { return nil }

// checkDir returns nil. Here, the directory's access control list decides who has access, and
// file modes don't show it.
func checkDir(string, fs.FileInfo) error { return nil }

func checkPrivate(fs.FileInfo) error { return nil }

// syncDir does nothing. Here you can't sync a directory, but the system journals its names.
func syncDir(*os.File) error { return nil }
