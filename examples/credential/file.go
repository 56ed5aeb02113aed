package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"example.com/go-webhookcfg/auth"
)

// edit replaces the file with the result of change, or leaves it as it is. If shared is set,
// the service accepts a file that others can read. The new file is also the lock: only one
// process can create it.
func edit(path string, shared bool, change func(entries) (entries, error)) error {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	next := path + ".new"
	file, err := os.OpenFile(next, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists: another process is editing the file, or one was interrupted; in that case remove it", next)
	}
	if err != nil {
		return err
	}
	err = errors.Join(fill(file, path, shared, change), file.Close())
	if err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		_ = os.Remove(next)
		return err
	}
	return syncDir(filepath.Dir(path))
}

// fill applies change to the file at path, which doesn't have to exist, and writes the
// result.
func fill(next *os.File, path string, shared bool, change func(entries) (entries, error)) error {
	var old entries
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	default:
		if old, err = read(path); err != nil {
			return err
		}
	}
	all, err := change(old)
	if err != nil {
		if info == nil {
			return errNoFile(path)
		}
		return err
	}
	if _, err := next.WriteString(all.String()); err != nil {
		return err
	}
	written, err := read(next.Name())
	if err == nil && !slices.Equal(written, all) {
		err = errors.New("the name or the owner contains a blank or a line break: leave it out")
	}
	if err != nil {
		return err
	}
	if info != nil {
		if err := keepAccess(next, info, path, shared); err != nil {
			return err
		}
	}
	return next.Sync()
}

// keepAccess gives the new file the mode, owner and group of the file at path. It fails if the
// service would refuse that mode: the service would then go on with the old secrets, even with
// a retired one.
func keepAccess(next *os.File, old fs.FileInfo, path string, shared bool) error {
	err := next.Chmod(old.Mode().Perm())
	if err == nil && check(next.Name(), shared) != nil {
		return fmt.Errorf("nothing was changed, because the service refuses %s: mode %04o grants access to group or others; use chmod 600, or -shared if your service accepts this mode", path, old.Mode().Perm())
	}
	if err = errors.Join(err, keepOwner(next, old)); err != nil {
		return fmt.Errorf("the owner and mode of %s cannot be kept; run the command as its owner: %w", path, err)
	}
	return nil
}

// syncDir makes a rename durable.
func syncDir(path string) error {
	if runtime.GOOS == "windows" {
		return nil // you can't sync a directory there
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

func errNoFile(path string) error {
	return fmt.Errorf("there is no file %s: name the credential file with -file, or make a new one with add", path)
}

// check returns the error that a service would refuse the file with. If shared is set, it
// accepts another owner, and a file that others can read. It doesn't decide whether the
// service can read the file.
func check(path string, shared bool) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return errNoFile(path)
	}
	file, err := auth.OpenFile(path, &auth.FileOptions{AllowReadable: shared})
	if err != nil {
		return err
	}
	return file.Close()
}

func read(path string) (entries, error) {
	if err := check(path, true); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	return parse(string(text)), err
}
