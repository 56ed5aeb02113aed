package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"example.com/go-webhookcfg/auth"
)

// edit replaces the file with the result of change, or leaves it as it is. The new file is
// also the lock: only one process can create it.
func edit(path string, change func(lines) (lines, error)) error {
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
// result. It fails if the service would refuse the result: the service would then go on with
// the old secrets, even with a retired one.
func fill(next *os.File, path string, change func(lines) (lines, error)) error {
	old, missing := read(path)
	if missing != nil && !errors.Is(missing, fs.ErrNotExist) {
		return missing
	}
	if missing != nil {
		old = lines{"begin", "end"}
	}
	all, err := change(old)
	if err != nil {
		return cmp.Or(missing, err)
	}
	if _, err := next.WriteString(strings.Join(all, "\n") + "\n"); err != nil {
		return err
	}
	if _, err := read(next.Name()); err != nil {
		return err
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

// read returns the lines of a file that the service accepts.
func read(path string) (lines, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no file %s: name the credential file with -file, or make a new one with add: %w", path, err)
	}
	file, err := auth.OpenFile(path, nil)
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return strings.Split(strings.TrimRight(strings.ReplaceAll(string(text), "\r\n", "\n"), "\n"), "\n"), nil
}
