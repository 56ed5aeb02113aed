package auth

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// readPrivateFile reads a regular file that other users can neither write nor, unless
// allowReadable is set, read.
func readPrivateFile(path string, allowReadable bool) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() { // opening a named pipe may block
		return "", fmt.Errorf("%s: not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return "", err
	}
	if err := checkMode(path, info.Mode(), allowReadable); err != nil {
		return "", err
	}
	text, err := io.ReadAll(file)
	return string(text), err
}

func checkMode(path string, mode fs.FileMode, allowReadable bool) error {
	forbidden := fs.FileMode(0o077)
	if allowReadable {
		forbidden = 0o022
	}
	switch {
	case !mode.IsRegular():
		return fmt.Errorf("%s: not a regular file", path)
	case runtime.GOOS != "windows" && mode&forbidden != 0:
		return fmt.Errorf("%s: mode %04o grants access to group or others; use chmod 600", path, mode.Perm())
	}
	return nil
}
