package engine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// unpackEnv is an environment variable. If it's set, find ignores installed programs, so that
// you can test unpacking on any machine.
const unpackEnv = "WEBHOOKCFG_TEST_UNPACK"

var errNotInstalled = errors.New("engine: not installed")

// program says where a daemon is.
type program struct {
	path string   // the daemon's path
	root string   // the directory of the unpacked package, or "/" if it's installed
	env  []string // the environment it needs
}

// find returns the daemon of an engine. It takes the installed one, or else the one from the
// Debian package.
func find(r recipe) (program, error) {
	p, err := installed(r)
	if err == nil {
		return p, nil
	}
	root, unpackErr := unpack(r.packages)
	if unpackErr != nil {
		return program{}, errors.Join(err, unpackErr)
	}
	p, err = locate(root, r)
	p.env = libraryPath(root)
	return p, err
}

// Program returns the path of a program in a Debian package, such as usr/bin/promtool. If it
// isn't installed, Program unpacks the package without installing it. That only works for
// programs that don't need their own libraries or files.
func Program(path, pkg string) (string, error) {
	p, err := find(recipe{programs: []string{path}, packages: pkg})
	return p.path, err
}

func installed(r recipe) (program, error) {
	if os.Getenv(unpackEnv) != "" {
		return program{}, errors.New("engine: " + unpackEnv + " is set")
	}
	for _, pattern := range r.programs {
		if path, err := exec.LookPath(filepath.Base(pattern)); err == nil {
			path, err = filepath.EvalSymlinks(path)
			return program{path: path, root: "/"}, err
		}
	}
	return locate("/", r)
}

// locate returns the daemon below a root. If there are several versions, it takes the last
// one.
func locate(root string, r recipe) (program, error) {
	for _, pattern := range r.programs {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			return program{}, err
		}
		if len(found) > 0 {
			return program{path: slices.Max(found), root: root}, nil
		}
	}
	return program{}, errNotInstalled
}

// sibling returns the path of another program of the same package.
func (p program) sibling(name string) string { return filepath.Join(filepath.Dir(p.path), name) }

// libraryPath adds the unpacked libraries to the path of the dynamic linker.
func libraryPath(root string) []string {
	var dirs []string
	for _, pattern := range []string{"usr/lib/*-linux-*", "lib/*-linux-*"} {
		found, _ := filepath.Glob(filepath.Join(root, pattern))
		dirs = append(dirs, found...)
	}
	if len(dirs) == 0 {
		return nil
	}
	var path strings.Builder
	path.WriteString(dirs[0])
	for _, dir := range dirs[1:] {
		path.WriteString(string(filepath.ListSeparator) + dir)
	}
	return []string{"LD_LIBRARY_PATH=" + path.String()}
}
