package auth

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// readPrivateFile reads a regular file that others can neither write nor, unless
// allowReadable, read.
func readPrivateFile(path string, allowReadable bool) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() { // to open it might block
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
		return fmt.Errorf("%s: mode %04o gives its group or others access; chmod 600 it", path, mode.Perm())
	}
	return nil
}
