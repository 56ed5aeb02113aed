//go:build !unix

package oplog

import (
	"io/fs"
	"os"
)

// Access is a matter of the folder's access control list here, which a file
// mode does not show.
func isOpenToAll(fs.FileInfo) bool { return false }

func checkPrivate(fs.FileInfo) error { return nil }

// syncDir does nothing: the system offers no such thing for a folder, and keeps
// its names in a journal.
func syncDir(*os.Root) error { return nil }
