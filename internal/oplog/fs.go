package oplog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// FS is the file system of a log: one directory. [Dir] is the implementation of the
// operating system. Names have no separators. All methods are safe for concurrent use.
type FS interface {
	// Lock opens or creates a file and locks it exclusively until it is closed. If it is
	// locked already, by this process or another, the error wraps [ErrLocked]. A locked
	// file is never removed or renamed.
	Lock(name string) (File, error)
	// Open opens an existing file; without one, the error wraps fs.ErrNotExist.
	Open(name string) (File, error)
	// Create creates a file that only its owner can access. If the name exists, even as
	// a dangling link, the error wraps fs.ErrExist.
	Create(name string) (File, error)
	// Rename replaces the file to by the file from, atomically.
	Rename(from, to string) error
	// Remove removes a name; if there is none, the error wraps fs.ErrNotExist.
	Remove(name string) error
	// Sync makes every Create, Rename and Remove so far durable.
	Sync() error
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
// even if the path comes to name another one.
type Dir struct {
	root   *os.Root
	shared bool
}

// OpenDir opens an existing directory. It refuses a symbolic link. Unless shared is
// set, it also refuses a world-writable directory without the sticky bit, and files that
// another user owns or may read or write.
func OpenDir(path string, shared bool) (*Dir, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory; symbolic links are not followed", path)
	}
	if !shared && isWorldWritable(info) {
		return nil, fmt.Errorf("directory %s is world-writable", path)
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	return &Dir{root: root, shared: shared}, nil
}

// Lock implements [FS].
func (d *Dir) Lock(name string) (File, error) {
	file, err := d.openFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		file, err = d.createFile(name)
	}
	if errors.Is(err, fs.ErrExist) { // another process has just created it
		file, err = d.openFile(name)
	}
	if err != nil {
		return nil, err
	}
	if err := lockFile(file); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %s", err, name), file.Close())
	}
	return osFile{file}, nil
}

// Open implements [FS].
func (d *Dir) Open(name string) (File, error) {
	file, err := d.openFile(name)
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

// Create implements [FS].
func (d *Dir) Create(name string) (File, error) {
	file, err := d.createFile(name)
	if err != nil {
		return nil, err
	}
	return osFile{file}, nil
}

// Rename implements [FS]. If files may be shared, the file takes over the mode of the one
// that it replaces.
func (d *Dir) Rename(from, to string) error {
	if info, err := d.root.Lstat(to); err == nil && d.shared {
		if err := d.root.Chmod(from, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return d.root.Rename(from, to)
}

// Remove implements [FS].
func (d *Dir) Remove(name string) error { return d.root.Remove(name) }

// Sync implements [FS].
func (d *Dir) Sync() error { return syncDir(d.root) }

// Close implements [FS].
func (d *Dir) Close() error { return d.root.Close() }

func (d *Dir) createFile(name string) (*os.File, error) {
	return d.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
}

// openFile opens a regular file. It refuses a symbolic link, a file that replaces the
// named one between the check and the opening, and one that is not private.
func (d *Dir) openFile(name string) (*os.File, error) {
	named, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !named.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file; symbolic links are not followed", name)
	}
	file, err := d.root.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	opened, err := file.Stat()
	switch {
	case err != nil:
	case !os.SameFile(named, opened):
		err = fmt.Errorf("%s was replaced while it was being opened", name)
	case d.shared:
	default:
		err = checkPrivate(opened)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// osFile is a file of the operating system.
type osFile struct{ *os.File }

// Size implements [File].
func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
