//go:build !unix

package auth

import "io/fs"

const openNonblock = 0

// ownedByProcessOrRoot always returns true: here you restrict the file with an access list.
func ownedByProcessOrRoot(fs.FileInfo) bool { return true }
