package engine

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// unpackEnv, if set, has the programs that are installed overlooked, so that the
// way through packages can be tried on a machine that has them.
const unpackEnv = "WEBHOOKCFG_TEST_UNPACK"

var errNotInstalled = errors.New("it is not installed")

// program is where a daemon and what belongs to it lie.
type program struct {
	path string   // of the daemon
	root string   // what its package was unpacked in; "/" if it is installed
	env  []string // what it needs in its environment
}

// find returns the daemon of an engine: the one that is installed or else the one
// of its Debian package.
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

func installed(r recipe) (program, error) {
	if os.Getenv(unpackEnv) != "" {
		return program{}, errors.New(unpackEnv + " is set")
	}
	for _, pattern := range r.programs {
		if path, err := exec.LookPath(filepath.Base(pattern)); err == nil {
			path, err = filepath.EvalSymlinks(path)
			return program{path: path, root: "/"}, err
		}
	}
	return locate("/", r)
}

// locate returns the daemon below a root, of several versions the last.
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

// libraryPath has the dynamic linker look into what was unpacked.
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
