package oplog

import (
	"errors"
	"os"
	"syscall"
)

// Sync implements [File] by fdatasync, which does not write the times of the file.
func (f osFile) Sync() error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	failed := conn.Control(func(fd uintptr) {
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = syscall.Fdatasync(int(fd))
		}
	})
	if failed != nil {
		return failed
	}
	return os.NewSyscallError("fdatasync", err)
}
