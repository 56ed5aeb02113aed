//go:build darwin || linux

package oplog

import (
	"os"
	"syscall"
)

// freeBytes returns how many bytes the user can still write in a directory.
func freeBytes(dir *os.File) (int64, error) {
	var s syscall.Statfs_t
	err := callSystem("fstatfs", dir, func(fd int) error { return syscall.Fstatfs(fd, &s) })
	return int64(s.Bavail) * int64(s.Bsize), err
}
