package auth

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"time"
)

// stamp is what a file looked like from outside when it was read.
type stamp struct {
	info fs.FileInfo
	read time.Time
}

// timeGrain is the coarsest step of file times in use: two writes within it may
// leave one time.
const timeGrain = 2 * time.Second

// mayDiffer reports whether the file at path may hold something else than when the
// stamp was taken.
func (s stamp) mayDiffer(path string) bool {
	now, err := os.Stat(path)
	if err != nil || s.info == nil {
		return true // reading it says what is wrong
	}
	same := os.SameFile(s.info, now) && s.info.Size() == now.Size() &&
		s.info.Mode() == now.Mode() && s.info.ModTime().Equal(now.ModTime())
	settled := s.read.Sub(now.ModTime()) > timeGrain
	return !same || !settled
}

// readRegular reads a regular file that others can neither write nor, unless
// allowReadable, read.
func readRegular(path string, allowReadable bool) (string, stamp, error) {
	s := stamp{read: time.Now()}
	info, err := os.Stat(path)
	if err != nil {
		return "", s, err
	}
	if !info.Mode().IsRegular() { // to open it might block
		return "", s, fmt.Errorf("%s: not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", s, err
	}
	defer file.Close()
	if s.info, err = file.Stat(); err != nil {
		return "", s, err
	}
	if err := checkMode(path, s.info.Mode(), allowReadable); err != nil {
		return "", s, err
	}
	text, err := io.ReadAll(file)
	return string(text), s, err
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
