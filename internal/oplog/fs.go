package oplog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// FS is the file system of a log: one directory. [Dir] is the implementation of the
// operating system. Names have no separators. All methods are safe for concurrent use.
//
// A file is locked exclusively from its opening until it is closed, whatever its names
// are. If it is locked already, by this process or another, the error of opening it wraps
// [ErrLocked].
type FS interface {
	// Open opens an existing file; without one, the error wraps fs.ErrNotExist.
	Open(name string) (File, error)
	// Create creates a file that only its owner can access. If the name exists, even as
	// a dangling link, the error wraps fs.ErrExist.
	Create(name string) (File, error)
	// SameFile reports whether the name leads to an open file. If there is no such name,
	// or it is a link or leads to another file, it does not. Neither does a name in a
	// directory that is not at its path any more.
	SameFile(name string, file File) (bool, error)
	// Rename replaces the file to by the file from, atomically.
	Rename(from, to string) error
	// Remove removes a name; if there is none, the error wraps fs.ErrNotExist.
	Remove(name string) error
	// Sync makes every Create, Rename and Remove so far durable. It opens no file.
	Sync() error
	// Free returns how many bytes this process can still write. If the system doesn't tell,
	// the error wraps [errors.ErrUnsupported].
	Free() (int64, error)
	// Close releases the directory.
	Close() error
}

// File is an open file of an [FS].
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	// Size returns the length in bytes.
	Size() (int64, error)
	// Truncate sets the length in bytes.
	Truncate(size int64) error
	// Sync makes the content and the length durable. After a Sync that failed, all
	// writes since the last successful one may be lost, even though they can still be
	// read and a later Sync succeeds.
	Sync() error
}

// Dir is the [FS] of the operating system. It stays in the directory that it opened,
// even if the path comes to name another one. But then no name leads to its files: the next
// process would look for them in the other one.
type Dir struct {
	root *os.Root
	// path is absolute, and info identifies the directory.
	path string
	info fs.FileInfo
	// self is the directory, open for syncing: when that is due, the process may be out
	// of file descriptors.
	self   *os.File
	shared bool
	// readOnly accepts files that cannot be written.
	readOnly bool
}

// OpenDir opens an existing directory. It refuses a symbolic link. Unless shared is
// set, it also refuses a directory without the sticky bit in which other users may write,
// and files that another user owns or may read or write.
func OpenDir(path string, shared bool) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory; symbolic links are not followed", path)
	}
	if !shared {
		if err := checkDir(path, info); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	self, err := root.Open(".")
	if err != nil {
		return nil, errors.Join(err, root.Close())
	}
	d := &Dir{root: root, path: path, self: self, shared: shared}
	if d.info, err = self.Stat(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// ReadOnly returns the directory, in which [Dir.Open] accepts files that cannot be
// written: they have no write permission, or the file system has none. Closing either
// closes both.
func (d *Dir) ReadOnly() *Dir {
	r := *d
	r.readOnly = true
	return &r
}

// Open implements [FS]. It refuses a file that is not a regular one, or not private.
func (d *Dir) Open(name string) (File, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if err := checkRegular(info); err != nil {
		return nil, err
	}
	file, err := d.open(name, os.O_RDWR)
	if err != nil && d.readOnly && !errors.Is(err, ErrLocked) {
		return d.open(name, os.O_RDONLY)
	}
	return file, err
}

// Create implements [FS]. A file that is refused, as on a file system without private
// modes or without locks, is removed, unless another process has locked it by now.
func (d *Dir) Create(name string) (File, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// open opens a file and claims it.
func (d *Dir) open(name string, flags int) (File, error) {
	opened, err := d.root.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, err
	}
	file := osFile{File: opened}
	if file.info, err = opened.Stat(); err == nil {
		err = d.claim(name, file)
	}
	if err == nil {
		return file, nil
	}
	isUnused := flags&os.O_EXCL != 0 && !errors.Is(err, ErrLocked)
	err = errors.Join(err, opened.Close())
	if isNamed, _ := d.SameFile(name, file); isUnused && isNamed {
		err = errors.Join(err, d.root.Remove(name))
	}
	return nil, err
}

// claim locks a file that is private. Once it is locked, it must still have the name: the
// file that was found may have been replaced, and the holder of its lock moved on.
func (d *Dir) claim(name string, file osFile) error {
	if !d.shared {
		if err := checkPrivate(file.info); err != nil {
			return err
		}
	}
	if err := lockFile(file.File); errors.Is(err, ErrLocked) {
		return fmt.Errorf("%w: %s", err, name)
	} else if err != nil {
		return err
	}
	isNamed, err := d.SameFile(name, file)
	if err == nil && !isNamed {
		err = fmt.Errorf("%s was replaced while it was being opened", name)
	}
	return err
}

// SameFile implements [FS].
func (d *Dir) SameFile(name string, file File) (bool, error) {
	dir, err := os.Lstat(d.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(dir, d.info) {
		return false, nil
	}
	// A process that may not follow the whole path can still have opened a relative one.
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return false, err
	}
	info, err := d.root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	opened, ok := file.(osFile)
	return err == nil && ok && os.SameFile(info, opened.info), err
}

// Rename implements [FS]. If files may be shared, the file takes over the mode of the one
// that it replaces.
func (d *Dir) Rename(from, to string) error {
	info, err := d.root.Lstat(to)
	if err == nil {
		err = checkRegular(info) // a link has a mode that is not the file's
	}
	if err == nil && d.shared {
		err = d.root.Chmod(from, info.Mode().Perm())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.root.Rename(from, to)
}

// Remove implements [FS].
func (d *Dir) Remove(name string) error { return d.root.Remove(name) }

// Sync implements [FS].
func (d *Dir) Sync() error { return syncDir(d.self) }

// Free implements [FS]. It doesn't count quotas of users.
func (d *Dir) Free() (int64, error) { return freeBytes(d.self) }

// Close implements [FS].
func (d *Dir) Close() error { return errors.Join(d.self.Close(), d.root.Close()) }

func checkRegular(info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file; symbolic links are not followed", info.Name())
	}
	return nil
}

// osFile is a file of the operating system.
type osFile struct {
	*os.File
	// info identifies the file.
	info fs.FileInfo
}

// ReadAt implements [File].
func (f osFile) ReadAt(b []byte, offset int64) (int, error) {
	n, err := f.File.ReadAt(b, offset)
	return n, withoutPath(err)
}

// WriteAt implements [File].
func (f osFile) WriteAt(b []byte, offset int64) (int, error) {
	n, err := f.File.WriteAt(b, offset)
	return n, withoutPath(err)
}

// Truncate implements [File].
func (f osFile) Truncate(size int64) error { return withoutPath(f.File.Truncate(size)) }

// Size implements [File].
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, withoutPath(err)
	}
	return info.Size(), nil
}

// withoutPath leaves out the path of an error, which is the name that the file was opened
// with: a log that was created or compacted was a temporary file then.
func withoutPath(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return os.NewSyscallError(path.Op, path.Err)
	}
	return err
}

// Close implements [File]. Closing alone would leave the lock to a child that the process
// is just starting, until the child runs its program.
func (f osFile) Close() error { return errors.Join(unlockFile(f.File), f.File.Close()) }
