package oplog

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"unsafe"
)

const (
	lockExclusively     = 0x2
	lockOrFail          = 0x1
	errorLockViolation  = syscall.Errno(33)
	farBeyondAnyContent = 0x7FFFFFFF
)

// lockFile locks one byte of the file until this handle is closed or the process ends.
// The byte is beyond the content, because a lock on this system also prevents reading.
func lockFile(file *os.File) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	lock := syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")
	if err := lock.Find(); err != nil {
		return err
	}
	failed := conn.Control(func(handle uintptr) {
		at := syscall.Overlapped{OffsetHigh: farBeyondAnyContent}
		done, _, cause := lock.Call(handle, lockExclusively|lockOrFail, 0, 1, 0, uintptr(unsafe.Pointer(&at)))
		if done == 0 {
			err = cause
		}
	})
	if failed != nil {
		return failed
	}
	if errors.Is(err, errorLockViolation) {
		return ErrLocked
	}
	return os.NewSyscallError("LockFileEx", err)
}

// isWorldWritable reports false: access is up to the access control list of the
// directory, which a file mode does not show.
func isWorldWritable(fs.FileInfo) bool { return false }

func checkPrivate(fs.FileInfo) error { return nil }

// syncDir does nothing: the system cannot sync a directory, and journals its names.
func syncDir(*os.Root) error { return nil }
