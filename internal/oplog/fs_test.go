package oplog_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"example.com/go-webhookcfg/internal/oplog"
)

// openDir opens a log in a directory of the operating system.
func openDir(t *testing.T, dir string, shared bool) (*oplog.Log, error) {
	t.Helper()
	fsys, err := oplog.OpenDir(dir, shared)
	if err != nil {
		return nil, err
	}
	return oplog.Open(fsys, "log", newModel(), oplog.Options{})
}

// makeLog creates a closed log in a new directory.
func makeLog(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	l, err := openDir(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Append(t.Context(), setAll("acme", "https://a.example/")), l.Close()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFilesArePrivate(t *testing.T) {
	skipWithoutModes(t)
	dir := makeLog(t)
	for _, name := range []string{"log", "log.lock"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || info.Mode() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func skipWithoutModes(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("files have no modes and no other owners here")
	}
}

func TestAccessibleFilesAreRefused(t *testing.T) {
	skipWithoutModes(t)
	for _, name := range []string{"log", "log.lock"} {
		for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602, 0o666} {
			dir := makeLog(t)
			if err := os.Chmod(filepath.Join(dir, name), mode); err != nil {
				t.Fatal(err)
			}
			if _, err := openDir(t, dir, false); err == nil || !strings.Contains(err.Error(), name+" has mode") {
				t.Errorf("%s of mode %o: %v", name, mode, err)
			}
			l, err := openDir(t, dir, true)
			if err != nil {
				t.Errorf("%s of mode %o, shared: %v", name, mode, err)
				continue
			}
			if err := errors.Join(l.Compact(t.Context()), l.Close()); err != nil {
				t.Error(err)
			}
			if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
				t.Errorf("mode %o of %s became %v, %v", mode, name, info.Mode(), err)
			}
		}
	}
}

func TestFilesOfOtherUsersAreRefused(t *testing.T) {
	skipWithoutModes(t)
	for _, name := range []string{"log", "log.lock"} {
		dir := makeLog(t)
		if err := os.Chown(filepath.Join(dir, name), 12345, -1); errors.Is(err, fs.ErrPermission) {
			t.Skip("only root can give files away")
		} else if err != nil {
			t.Fatal(err)
		}
		if _, err := openDir(t, dir, false); err == nil || !strings.Contains(err.Error(), name+" belongs to another user") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDirectories(t *testing.T) {
	skipWithoutModes(t)
	dir := makeLog(t)
	for mode, refused := range map[os.FileMode]bool{0o700: false, 0o755: false, 0o777: true, 0o777 | os.ModeSticky: false} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		for _, shared := range []bool{false, true} {
			l, err := openDir(t, dir, shared)
			if (err != nil) != (refused && !shared) {
				t.Errorf("%v, shared %t: %v", mode, shared, err)
			}
			if err == nil {
				l.Close()
			}
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if _, err := openDir(t, link, true); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("a link to a directory: %v", err)
	}
	if _, err := openDir(t, filepath.Join(dir, "log"), true); err == nil {
		t.Error("a file was opened as a directory")
	}
	if _, err := openDir(t, filepath.Join(dir, "missing"), true); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing directory: %v", err)
	}
}

// TestLinks puts links in place of all files, to a file that must stay as it is or to
// none.
func TestLinks(t *testing.T) {
	skipWithoutModes(t)
	for _, name := range []string{"log", "log.lock", "log.tmp"} {
		for _, exists := range []bool{true, false} {
			dir, victim := makeLog(t), filepath.Join(t.TempDir(), "victim")
			if exists {
				if err := os.WriteFile(victim, []byte("precious"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			path := filepath.Join(dir, name)
			if err := os.Remove(path); err != nil && name != "log.tmp" {
				t.Fatal(err)
			}
			if err := os.Symlink(victim, path); err != nil {
				t.Fatal(err)
			}
			l, err := openDir(t, dir, true)
			if (err == nil) != (name == "log.tmp") {
				t.Errorf("%s is a link: %v", name, err)
			}
			if err == nil {
				err = errors.Join(l.Compact(t.Context()), l.Close())
			}
			if err != nil && name == "log.tmp" {
				t.Errorf("next to a link: %v", err)
			}
			if content, _ := os.ReadFile(victim); string(content) != "precious" && exists {
				t.Errorf("%s: the target of the link is now %q", name, content)
			} else if _, err := os.Lstat(victim); err == nil && !exists {
				t.Errorf("%s: the target of the link was created", name)
			}
		}
	}
}

// TestCreateRefusesTakenNames creates files whose names exist.
func TestCreateRefusesTakenNames(t *testing.T) {
	skipWithoutModes(t)
	dir := makeLog(t)
	if err := os.Symlink(filepath.Join(dir, "nowhere"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	fsys, err := oplog.OpenDir(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer fsys.Close()
	for _, name := range []string{"log", "link"} {
		if _, err := fsys.Create(name); !errors.Is(err, fs.ErrExist) {
			t.Errorf("Create(%q): %v", name, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("the link was followed")
	}
}

func TestDirectoriesInPlaceOfFiles(t *testing.T) {
	for _, name := range []string{"log", "log.lock", "log.tmp"} {
		dir := makeLog(t)
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, name, "inside"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := openDir(t, dir, false); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s is a directory: %v", name, err)
		}
	}
}

func TestDirLock(t *testing.T) {
	dir := makeLog(t)
	first, err := openDir(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDir(t, dir, false); !errors.Is(err, oplog.ErrLocked) || !strings.Contains(err.Error(), "log.lock") {
		t.Errorf("a second opener: %v", err)
	}
	// The failed opening must not have released the lock.
	if _, err := openDir(t, dir, false); !errors.Is(err, oplog.ErrLocked) {
		t.Errorf("a third opener: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	last, err := openDir(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := last.Close(); err != nil {
		t.Error(err)
	}
}
