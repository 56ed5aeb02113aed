//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package oplog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// isWorldWritable reports whether any user may replace files in a directory. In one with
// the sticky bit, only their owners may.
func isWorldWritable(dir fs.FileInfo) bool {
	return dir.Mode()&0o002 != 0 && dir.Mode()&fs.ModeSticky == 0
}

// checkPrivate returns an error for a file that another user owns or may access.
func checkPrivate(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, accessible to other users; use chmod 600", info.Name(), mode)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user", info.Name())
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// lockFile locks the whole file until this descriptor is closed or the process ends.
// Unlike a lock by fcntl, a lock by flock also excludes a second descriptor of the same
// process, and survives the closing of one.
func lockFile(file *os.File) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	failed := conn.Control(func(fd uintptr) {
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = syscall.Flock(int(fd), syscall.LOCK_EX|syscall.LOCK_NB)
		}
	})
	if failed != nil {
		return failed
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return os.NewSyscallError("flock", err)
}
