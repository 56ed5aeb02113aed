package engine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// unpackEnv names the environment variable that makes find ignore installed programs,
// so that unpacking packages can be tested on any machine.
const unpackEnv = "WEBHOOKCFG_TEST_UNPACK"

var errNotInstalled = errors.New("engine: not installed")

// program is the location of a daemon.
type program struct {
	path string   // of the daemon
	root string   // directory that its package was unpacked in; "/" if it is installed
	env  []string // environment that it needs
}

// find returns the daemon of an engine: the installed one, or else that of its Debian
// package.
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

// Program returns the path of a program of a Debian package, such as usr/bin/promtool: the
// installed one, or else that of the package, which is unpacked and not installed. It suits
// programs without libraries and files of their own.
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

// locate returns the daemon below a root, the last one of several versions.
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
