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

// lockFile locks one byte of the file until unlockFile, until this handle is closed or until
// the process ends. The byte is far beyond the content, because here a lock also keeps others
// from reading.
func lockFile(file *os.File) error {
	err := withLockedByte(file, "LockFileEx", func(proc *syscall.LazyProc, handle uintptr, at *syscall.Overlapped) (uintptr, uintptr, error) {
		return proc.Call(handle, lockExclusively|lockOrFail, 0, 1, 0, uintptr(unsafe.Pointer(at)))
	})
	if errors.Is(err, errorLockViolation) {
		return ErrLocked
	}
	return err
}

func unlockFile(file *os.File) error {
	return withLockedByte(file, "UnlockFileEx", func(proc *syscall.LazyProc, handle uintptr, at *syscall.Overlapped) (uintptr, uintptr, error) {
		return proc.Call(handle, 0, 1, 0, uintptr(unsafe.Pointer(at)))
	})
}

func withLockedByte(file *os.File, name string, call func(*syscall.LazyProc, uintptr, *syscall.Overlapped) (uintptr, uintptr, error)) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	proc := syscall.NewLazyDLL("kernel32.dll").NewProc(name)
	if err := proc.Find(); err != nil {
		return err
	}
	failed := conn.Control(func(handle uintptr) {
		if done, _, cause := call(proc, handle, &syscall.Overlapped{OffsetHigh: farBeyondAnyContent}); done == 0 {
			err = cause
		}
	})
	if failed != nil {
		return failed
	}
	return os.NewSyscallError(name, err)
}

// freeBytes returns how many bytes the user can still write in a directory.
func freeBytes(dir *os.File) (free int64, err error) {
	path, err := syscall.UTF16PtrFromString(dir.Name())
	if err != nil {
		return 0, err
	}
	proc := syscall.NewLazyDLL("kernel32.dll").NewProc("GetDiskFreeSpaceExW")
	if err := proc.Find(); err != nil {
		return 0, err
	}
	if done, _, cause := proc.Call(uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&free)), 0, 0); done == 0 {
		return 0, os.NewSyscallError("GetDiskFreeSpaceEx", cause)
	}
	return free, nil
}

// checkDir returns nil. Here, the directory's access control list decides who has access, and
// file modes don't show it.
func checkDir(string, fs.FileInfo) error { return nil }

func checkPrivate(fs.FileInfo) error { return nil }

// syncDir does nothing. Here you can't sync a directory, but the system journals its names.
func syncDir(*os.File) error { return nil }
