package auth

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
)

// readPrivateFile reads a regular file that other users can't write. Unless shared is set,
// they can't own or read it either. It opens the file first and then checks it, so nobody can
// replace it in between.
func readPrivateFile(path string, shared bool) (string, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|openNonblock, 0) // a named pipe would block
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	if err := checkAccess(path, info, shared); err != nil {
		return "", err
	}
	text, err := io.ReadAll(file)
	return string(text), err
}

func checkAccess(path string, info fs.FileInfo, shared bool) error {
	mode, forbidden := info.Mode(), fs.FileMode(0o077)
	if shared {
		forbidden = 0o022
	}
	switch {
	case !mode.IsRegular():
		return fmt.Errorf("%s: not a regular file", path)
	case runtime.GOOS != "windows" && mode&forbidden != 0:
		if shared {
			return fmt.Errorf("%s: mode %04o lets group or others write; use chmod 640", path, mode.Perm())
		}
		return fmt.Errorf("%s: mode %04o grants access to group or others; use chmod 600, if the user of the service owns the file, or, if the platform sets it, FileOptions.AllowReadable", path, mode.Perm())
	case !shared && !ownedByProcessOrRoot(info):
		return fmt.Errorf("%s: owned neither by the user of this process nor by root; start the process as the user that owns the file, or, only if the service runs as this user, use chown", path)
	}
	return nil
}
