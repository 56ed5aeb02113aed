//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package oplog

import (
	"errors"
	"os"
	"syscall"
)

// lockFile takes the lock of the whole file, held until this opening of it is
// closed or the process ends. Unlike a lock by fcntl, it also keeps out a second
// opening by the same process, and survives the closing of one.
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
