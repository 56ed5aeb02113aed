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
	"example.com/go-webhookcfg/internal/oplog/faultfs"
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

// dirFS returns a directory of the operating system, which is closed when the test ends.
func dirFS(t *testing.T, dir string, shared bool) *oplog.Dir {
	t.Helper()
	fsys, err := oplog.OpenDir(dir, shared)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = fsys.Close() })
	return fsys
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

// TestVolume: who may not change the mode of a directory can still do what the error says.
func TestVolume(t *testing.T) {
	skipWithoutModes(t)
	for _, mode := range []os.FileMode{0o777, 0o775 | os.ModeSetgid} {
		volume := t.TempDir()
		if err := os.Chmod(volume, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := openDir(t, volume, false); err == nil || !strings.HasSuffix(err.Error(), "use a directory of your own inside it, made with mkdir -m 700, and set fsGroupChangePolicy to OnRootMismatch if there is an fsGroup") {
			t.Errorf("%v: %v", mode, err)
		}
		own := filepath.Join(volume, "own")
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		l, err := openDir(t, own, false)
		if err != nil {
			t.Fatalf("%v: %v", mode, err)
		}
		l.Close()
	}
}

func TestDirectories(t *testing.T) {
	skipWithoutModes(t)
	dir := makeLog(t)
	for mode, says := range map[os.FileMode]string{
		0o700: "", 0o755: "", 0o777 | os.ModeSticky: "", 0o770 | os.ModeSticky: "",
		0o777: "mode 0777, world-writable", 0o702: "mode 0702, world-writable",
		0o770: "mode 0770, writable by its group", 0o775: "mode 0775, writable by its group",
	} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		for _, shared := range []bool{false, true} {
			l, err := openDir(t, dir, shared)
			if refused := says != "" && !shared; (err != nil) != refused || refused && !strings.Contains(err.Error(), says) {
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
	fsys := dirFS(t, dir, false)
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

// TestTheFileItselfIsLocked opens an open log's file under other names and without the lock
// file, before and after compactions.
func TestTheFileItselfIsLocked(t *testing.T) {
	dir := makeLog(t)
	l, err := openDir(t, dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range 3 {
		other := t.TempDir()
		if err := os.Link(filepath.Join(dir, "log"), filepath.Join(other, "log")); err != nil {
			t.Skip("no hard links here: ", err)
		}
		if _, err := openDir(t, other, false); !errors.Is(err, oplog.ErrLocked) {
			t.Errorf("a hard link after %d compactions: %v", i, err)
		}
		if runtime.GOOS != "windows" {
			if err := os.Remove(filepath.Join(dir, "log.lock")); err != nil {
				t.Fatal(err)
			}
			if _, err := openDir(t, dir, false); !errors.Is(err, oplog.ErrLocked) {
				t.Errorf("without the lock file, after %d compactions: %v", i, err)
			}
		}
		if err := l.Compact(t.Context()); err != nil {
			t.Fatal(err)
		}
		// The link is now a file of its own, as a backup is.
		if backup, err := openDir(t, other, false); err != nil {
			t.Errorf("the file before compaction %d: %v", i+1, err)
		} else if err := backup.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestLockedFileKeepsItsName replaces a file like a compaction does, holding the locks of the
// old one and the new one, while others open it.
func TestLockedFileKeepsItsName(t *testing.T) {
	dir := t.TempDir()
	fsys := dirFS(t, dir, false)
	current, err := fsys.Create("log")
	if err != nil {
		t.Fatal(err)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				current.Close()
				return
			default:
			}
			next, err := fsys.Create("next")
			if err == nil {
				err = fsys.Rename("next", "log")
			}
			if err := errors.Join(err, current.Close()); err != nil {
				t.Error(err)
				return
			}
			current = next
			// Between two replacements the lock is free for a moment.
			if err := current.Close(); err != nil {
				t.Error(err)
				return
			}
			for current, err = fsys.Open("log"); err != nil; current, err = fsys.Open("log") {
				if !errors.Is(err, oplog.ErrLocked) {
					t.Error(err)
					return
				}
				runtime.Gosched()
			}
		}
	}()
	for opened := 0; opened < 1000; {
		file, err := fsys.Open("log")
		if err != nil {
			continue // locked, or replaced meanwhile
		}
		if is, err := fsys.SameFile("log", file); !is || err != nil {
			t.Errorf("after %d openings, a file is locked that has lost its name: %v", opened, err)
			opened = 1000
		}
		opened++
		if err := file.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	<-stopped
}

func TestSameFile(t *testing.T) {
	dir := makeLog(t)
	path := filepath.Join(dir, "log")
	fsys := dirFS(t, dir, true)
	file, err := fsys.Open("log")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	check := func(what string, want bool, change ...error) {
		t.Helper()
		if err := errors.Join(change...); err != nil {
			t.Skip(err)
		}
		if is, err := fsys.SameFile("log", file); is != want || err != nil {
			t.Errorf("%s: %t, %v", what, is, err)
		}
	}
	check("as opened", true)
	check("with a second name", true, os.Link(path, path+".link"))
	check("moved", false, os.Rename(path, path+".moved"))
	check("a link to it", false, os.Symlink(path+".moved", path))
	check("moved back", true, os.Rename(path+".moved", path))
	check("replaced", false, os.WriteFile(path+".new", nil, 0o600), os.Rename(path+".new", path))
	check("removed", false, os.Remove(path))
}

// TestOpenErrorsHaveThePath: a name alone doesn't say where you should look.
func TestOpenErrorsHaveThePath(t *testing.T) {
	path := t.TempDir()
	dir := dirFS(t, path, true)
	if _, err := dir.Open("log"); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "stat "+filepath.Join(path, "log")) {
		t.Errorf("Open: %v", err)
	}
	if err := os.Mkdir(filepath.Join(path, "log"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Create("log"); !errors.Is(err, os.ErrExist) || !strings.Contains(err.Error(), "open "+filepath.Join(path, "log")) {
		t.Errorf("Create: %v", err)
	}
}

// TestErrorsLeaveOutTheName: a file can get another name after it was opened.
func TestErrorsLeaveOutTheName(t *testing.T) {
	file, err := dirFS(t, t.TempDir(), true).Create("log.tmp")
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	for what, call := range map[string]func() error{
		"ReadAt":   func() error { _, err := file.ReadAt(make([]byte, 1), 0); return err },
		"WriteAt":  func() error { _, err := file.WriteAt(make([]byte, 1), 0); return err },
		"Truncate": func() error { return file.Truncate(0) },
		"Size":     func() error { _, err := file.Size(); return err },
	} {
		if err := call(); !errors.Is(err, os.ErrClosed) || strings.Contains(err.Error(), "log.tmp") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDirectoryAtAnotherPath takes the path from the directory of an open log.
func TestDirectoryAtAnotherPath(t *testing.T) {
	for what, take := range map[string]func(path string) error{
		"renamed":                func(path string) error { return os.Rename(path, path+".moved") },
		"in a directory renamed": func(path string) error { return os.Rename(filepath.Dir(path), filepath.Dir(path)+".moved") },
		"replaced by a copy of it": func(path string) error {
			return errors.Join(os.Rename(path, path+".moved"), os.CopyFS(path, os.DirFS(path+".moved")))
		},
		"replaced by a link to it": func(path string) error {
			return errors.Join(os.Rename(path, path+".moved"), os.Symlink(path+".moved", path))
		},
	} {
		t.Run(what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "parent", "dir")
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			l, err := openDir(t, path, true)
			if err != nil {
				t.Fatal(err)
			}
			if err := take(path); err != nil {
				t.Skip(err)
			}
			if err := l.Append(t.Context(), unsetAll("acme")); !errors.Is(err, oplog.ErrReadOnly) || l.Err() == nil {
				t.Errorf("a change: %v, then %v", err, l.Err())
			}
			if err := l.Compact(t.Context()); err == nil {
				t.Error("Compact succeeds")
			}
			if err := l.Close(); !errors.Is(err, oplog.ErrReadOnly) {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

// TestModeOfALink puts a link in the place of a file whose mode a new file takes over.
func TestModeOfALink(t *testing.T) {
	skipWithoutModes(t)
	dir := makeLog(t)
	fsys := dirFS(t, dir, true)
	next, err := fsys.Create("next")
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	path := filepath.Join(dir, "log")
	if err := errors.Join(os.Remove(path), os.Symlink("next", path)); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Rename("next", "log"); err == nil || !strings.Contains(err.Error(), "log is not a regular file") {
		t.Errorf("Rename: %v", err)
	}
	if info, err := os.Lstat(filepath.Join(dir, "next")); err != nil || info.Mode() != 0o600 {
		t.Errorf("the new file has mode %v, %v", info.Mode(), err)
	}
}

// TestReservedNames opens logs with the names of the files next to a log.
func TestReservedNames(t *testing.T) {
	dir := makeLog(t)
	for _, name := range []string{"log.tmp", "log.lock", ".tmp", ".lock", "other.TMP"} {
		fsys, err := oplog.OpenDir(dir, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := oplog.Open(fsys, name, newModel(), oplog.Options{}); err == nil || !strings.Contains(err.Error(), "reserved") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}

// TestCompactionOpensOneFile: once a compaction has its file, it doesn't need another one. A
// process that's out of file descriptors couldn't open it.
func TestCompactionOpensOneFile(t *testing.T) {
	fsys := faultfs.New()
	l := openLog(t, fsys, newModel())
	appendAll(t, l, 100)
	opened := func() int { return fsys.Count(faultfs.OpOpen) + fsys.Count(faultfs.OpCreate) }
	before := opened()
	if err := l.Compact(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := opened() - before; n != 1 {
		t.Errorf("a compaction opened %d files", n)
	}
}
