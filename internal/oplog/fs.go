package oplog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// FS is what a log needs of the one folder that it lives in. [Dir] is the real
// one. Names have no separators. All methods are safe for concurrent use.
type FS interface {
	// Lock opens or creates a file and holds it exclusively until it is closed.
	// If somebody else holds it, in this process or in another, the error wraps
	// [ErrLocked]. A locked file is never removed or renamed.
	Lock(name string) (File, error)
	// Open opens an existing file; without one, the error wraps fs.ErrNotExist.
	Open(name string) (File, error)
	// Create makes a file that only its owner can access. If the name is taken,
	// even by a dangling link, the error wraps fs.ErrExist.
	Create(name string) (File, error)
	// Rename puts the file from in the place of to, at once and whole.
	Rename(from, to string) error
	// Remove removes a name; without it, the error wraps fs.ErrNotExist.
	Remove(name string) error
	// Sync makes every Create, Rename and Remove so far durable.
	Sync() error
	// Close ends the use of the folder.
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
	// Sync makes the content and the length durable. After a Sync that failed,
	// what was written since the last good one may be lost, even though it can
	// still be read and a later Sync succeeds.
	Sync() error
}

// Dir is the [FS] of the operating system. It holds on to its folder, whatever
// happens to the path that it was opened by.
type Dir struct {
	root   *os.Root
	shared bool
}

// OpenDir opens an existing folder. It refuses one that is a symbolic link. Unless
// shared is set, it also refuses a folder in which everybody may replace files,
// and files that are not the user's own or that others may read or write.
func OpenDir(path string, shared bool) (*Dir, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder; symbolic links are not followed", path)
	}
	if !shared && isWorldWritable(info) {
		return nil, fmt.Errorf("everybody may replace files in %s", path)
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
	if errors.Is(err, fs.ErrExist) { // somebody was quicker
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

// Rename implements [FS]. The file takes over the mode of the one it replaces.
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

// openFile opens a file and makes sure that it is the very file that has the name,
// not one that a link leads to, and that it may be trusted.
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
		err = fmt.Errorf("%s was replaced while it was opened", name)
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
