//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package oplog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// lockFile refuses: without a lock, two openers would overwrite each other's changes.
func lockFile(*os.File) error {
	return fmt.Errorf("no way to lock a file on this system: %w", errors.ErrUnsupported)
}

// Access is a matter of the folder's access control list here, which a file
// mode does not show.
func isWorldWritable(fs.FileInfo) bool { return false }

func checkPrivate(fs.FileInfo) error { return nil }

// syncDir does nothing: the system offers no such thing for a folder, and keeps
// its names in a journal.
func syncDir(*os.Root) error { return nil }
