//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package oplog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkDir returns an error if other users can replace files in the directory. With the
// sticky bit, they can only replace their own.
func checkDir(path string, info fs.FileInfo) error {
	mode := info.Mode()
	if mode&0o022 == 0 || mode&fs.ModeSticky != 0 {
		return nil
	}
	writers := "world-writable"
	if mode&0o002 == 0 {
		writers = "writable by its group"
	}
	return fmt.Errorf("directory %s has mode %04o, %s; use chmod go-w, or if it isn't yours, as on a volume of Kubernetes, use a directory of your own inside it, made with mkdir -m 700, and set fsGroupChangePolicy to OnRootMismatch if there is an fsGroup", path, mode.Perm(), writers)
}

// checkPrivate returns an error if another user owns the file or can access it.
func checkPrivate(info fs.FileInfo) error {
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%s has mode %04o, accessible to other users; use chmod 600", info.Name(), mode)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user; start the process as that user, or, only if the service runs as this one, use chown", info.Name())
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(dir *os.File) error { return dir.Sync() }

// lockFile locks the whole file until unlockFile, until this descriptor is closed or until
// the process ends. It uses flock, because a lock by fcntl wouldn't keep out a second
// descriptor of the same process, and closing any descriptor would release it.
func lockFile(file *os.File) error {
	err := flock(file, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return ErrLocked
	}
	return err
}

func unlockFile(file *os.File) error { return flock(file, syscall.LOCK_UN) }

func flock(file *os.File, how int) error {
	return callSystem("flock", file, func(fd int) error { return syscall.Flock(fd, how) })
}

// callSystem makes a system call for a file, and repeats it if a signal interrupts it.
func callSystem(name string, file *os.File, call func(fd int) error) error {
	conn, err := file.SyscallConn()
	if err != nil {
		return err
	}
	failed := conn.Control(func(fd uintptr) {
		for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
			err = call(int(fd))
		}
	})
	if failed != nil {
		return failed
	}
	return os.NewSyscallError(name, err)
}
