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

// edit replaces the file with the result of change, or leaves it as it is. The new file is
// also the lock: only one process can create it.
func edit(path string, change func(entries) (entries, error)) error {
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
	err = errors.Join(fill(file, path, change), file.Close())
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
func fill(next *os.File, path string, change func(entries) (entries, error)) error {
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
		if err := errors.Join(keepOwner(next, info), next.Chmod(info.Mode().Perm())); err != nil {
			return fmt.Errorf("the owner and mode of %s cannot be kept; run the command as its owner: %w", path, err)
		}
	}
	return next.Sync()
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

// check returns the error that a service would refuse the file with. It doesn't decide
// whether the service can read it.
func check(path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return errNoFile(path)
	}
	file, err := auth.OpenFile(path, &auth.FileOptions{AllowReadable: true})
	if err != nil {
		return err
	}
	return file.Close()
}

func read(path string) (entries, error) {
	if err := check(path); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	return parse(string(text)), err
}
