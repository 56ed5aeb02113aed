package oplog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// FS is the file system of a log: one directory. Use [Dir] for a directory of the operating
// system. Names have no separators. You can call all methods concurrently.
//
// A file is locked exclusively while it's open, under all its names. If this process or
// another one has it open already, opening it returns an error that wraps [ErrLocked].
type FS interface {
	// Open opens an existing file. If there is none, the error wraps fs.ErrNotExist.
	Open(name string) (File, error)
	// Create creates a file that only its owner can access. If the name is taken, even by a
	// dangling link, the error wraps fs.ErrExist.
	Create(name string) (File, error)
	// SameFile reports whether the name leads to an open file. It returns false if there is
	// no such name, if it's a link or leads to another file, or if the directory isn't at its
	// path any more.
	SameFile(name string, file File) (bool, error)
	// Rename replaces the file to with the file from, atomically.
	Rename(from, to string) error
	// Remove removes a name. If there is none, the error wraps fs.ErrNotExist.
	Remove(name string) error
	// Sync makes every Create, Rename and Remove so far durable. It doesn't open a file.
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
	// Sync makes the content and the length durable. If it fails, all writes since the last
	// successful Sync can be lost, even though you can still read them and a later Sync
	// succeeds.
	Sync() error
}

// Dir is the [FS] of the operating system. It stays in the directory that it opened, even if
// the path comes to name another one. [Dir.SameFile] then returns false for all files,
// because the next process would look for them in the other directory.
type Dir struct {
	root *os.Root
	// path is absolute, and info identifies the directory.
	path string
	info fs.FileInfo
	// self is the directory, kept open for syncing: by the time that it's needed, the process
	// may have run out of file descriptors.
	self   *os.File
	shared bool
	// readOnly makes Open accept files that can't be written.
	readOnly bool
}

// OpenDir opens an existing directory. It refuses a symbolic link. If you don't set shared,
// it also refuses a directory that other users can write to, unless that has the sticky bit,
// and Open refuses files that another user owns, or can read or write.
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

// ReadOnly returns the same directory, but its Open accepts files that can't be written
// because of their permissions or a read-only file system. Closing one of the two closes
// both.
func (d *Dir) ReadOnly() *Dir {
	r := *d
	r.readOnly = true
	return &r
}

// Open implements [FS]. It refuses files that aren't regular or aren't private.
func (d *Dir) Open(name string) (File, error) {
	info, err := d.root.Lstat(name)
	if err != nil {
		return nil, d.withPath(name, err)
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

// Create implements [FS]. If it has to refuse its new file, for example on a file system
// without private modes or locks, it removes the file, unless another process has locked it
// by then.
func (d *Dir) Create(name string) (File, error) {
	return d.open(name, os.O_RDWR|os.O_CREATE|os.O_EXCL)
}

// open opens a file and claims it.
func (d *Dir) open(name string, flags int) (File, error) {
	opened, err := d.root.OpenFile(name, flags, 0o600)
	if err != nil {
		return nil, d.withPath(name, err)
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

// withPath names the whole path in an error of the root, which has the file's name only.
func (d *Dir) withPath(name string, err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: strings.TrimSuffix(path.Op, "at"), Path: filepath.Join(d.path, name), Err: path.Err}
	}
	return err
}

// SameFile implements [FS].
func (d *Dir) SameFile(name string, file File) (bool, error) {
	dir, err := os.Lstat(d.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(dir, d.info) {
		return false, nil
	}
	// You can open a relative path even if you may not follow the absolute one, so a lack of
	// permission says nothing.
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

// Rename implements [FS]. If files can be shared, the file gets the mode of the one that it
// replaces.
func (d *Dir) Rename(from, to string) error {
	info, err := d.root.Lstat(to)
	if err == nil {
		err = checkRegular(info) // a link has its own mode, not its target's
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

// Free implements [FS]. It doesn't know about user quotas.
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

// withoutPath removes the path from an error. It's the name that the file was opened with,
// which was a temporary one for a log that was created or compacted since.
func withoutPath(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return os.NewSyscallError(path.Op, path.Err)
	}
	return err
}

// Close implements [File]. It unlocks the file first. Otherwise a child that the process is
// just starting would keep the lock until it runs its program.
func (f osFile) Close() error { return errors.Join(unlockFile(f.File), f.File.Close()) }
