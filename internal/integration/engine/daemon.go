package engine

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

// Daemon is a server other than a database, such as an HTTP proxy. Like a database, it can be
// installed, or come from a Debian package.
type Daemon struct {
	// Paths are patterns of the program's path below a root.
	Paths []string
	// Package is a regular expression for the name of the Debian package.
	Package string
	// Configure writes the files of an instance and returns the arguments of the program. The
	// program must stay in the foreground.
	Configure func(Instance) (args []string, err error)
}

// Instance is a daemon that is about to start.
type Instance struct {
	// Dir is a private directory that the instance can write to.
	Dir string
	// Root is the directory of the unpacked package, or "/" if the program is installed.
	Root string
	// Port is the port of 127.0.0.1 to listen on.
	Port string
}

// Write writes a file in Dir and returns its path.
func (i Instance) Write(name, text string) (path string, err error) {
	path = filepath.Join(i.Dir, name)
	return path, errors.Join(os.WriteFile(path, []byte(text), 0o600), chownToServer(path))
}

// Start starts the daemon for one test and returns its address. It skips the test with
// -short.
func (d Daemon) Start(t testing.TB) (addr string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("-short: test needs %s", d.Package)
	}
	p, err := find(recipe{programs: d.Paths, packages: d.Package})
	if err != nil {
		t.Fatal(err)
	}
	dir, err := privateDir()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p.env = append(p.env, "HOME="+dir, "TMPDIR="+dir)
	for range 3 { // another process may take the port first
		if addr, err = d.launch(t, p, dir); err == nil {
			return addr
		}
	}
	t.Fatal(err)
	return ""
}

func (d Daemon) launch(t testing.TB, p program, dir string) (addr string, err error) {
	if addr, err = freeAddress(); err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", err
	}
	args, err := d.Configure(Instance{dir, p.root, port})
	if err != nil {
		return "", err
	}
	process, err := launchListening(p, args, addr)
	if err != nil {
		return "", fmt.Errorf("%s: %w", filepath.Base(p.path), err)
	}
	t.Cleanup(func() {
		if err := process.kill(); err != nil {
			t.Error(err)
		}
	})
	return addr, nil
}
