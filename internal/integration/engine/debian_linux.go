package engine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

const cacheName = "webhookcfg-integration"

// unpack downloads the Debian package whose name matches the pattern (the last one if there
// are several), and the libraries that this machine lacks. It unpacks them in the cache and
// returns the directory, which stays for later runs.
//
// You don't need privileges: apt gets its own directories, and nothing is installed.
func unpack(pattern string) (string, error) {
	cache, err := cacheDir()
	if err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(cache, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	root := filepath.Join(cache, strings.Trim(regexp.MustCompile(`[^a-z]+`).ReplaceAllString(pattern, "-"), "-"))
	if _, err := os.Stat(root); err == nil {
		return root, nil
	}
	return root, newApt(cache).unpack(pattern, root)
}

// cacheDir returns the directory for unpacked packages. For root it's a system directory,
// because the servers' account can't enter root's home.
func cacheDir() (string, error) {
	dir := filepath.Join("/var/cache", cacheName)
	if os.Getuid() != 0 {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(user, cacheName)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Getuid() || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return "", fmt.Errorf("engine: %s is not a directory that only its owner can write to", dir)
	}
	return dir, nil
}

// lock keeps other test programs from unpacking at the same time.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		_ = file.Close()
		return nil, err
	}
	return func() { _ = file.Close() }, nil
}

// apt is the package manager with its own directories.
type apt struct {
	dir     string
	options []string
}

func newApt(cache string) apt {
	dir := filepath.Join(cache, "apt")
	return apt{dir, []string{
		"-o", "Dir::State=" + dir + "/state", "-o", "Dir::State::lists=" + dir + "/lists", "-o", "Dir::State::status=/var/lib/dpkg/status",
		"-o", "Dir::Cache=" + dir + "/cache", "-o", "Debug::NoLocking=1", "-o", "APT::Sandbox::User=", "-o", "Acquire::Retries=3",
	}}
}

func (a apt) unpack(pattern, root string) error {
	for _, sub := range []string{"state", "lists/partial", "cache/archives/partial", "packages"} {
		if err := os.MkdirAll(filepath.Join(a.dir, sub), 0o755); err != nil {
			return err
		}
	}
	if _, err := a.tool("apt-get", append(a.options, "-q", "update")...); err != nil {
		return err
	}
	names, err := a.needed(pattern)
	if err != nil {
		return err
	}
	if _, err := a.tool("apt-get", append(append(a.options, "-q", "download"), names...)...); err != nil {
		return err
	}
	return a.extract(root)
}

// needed returns the package and its missing libraries. It leaves out LLVM, which is larger
// than everything else: PostgreSQL only needs it for its JIT compiler, and we turn that off.
func (a apt) needed(pattern string) ([]string, error) {
	out, err := a.tool("apt-cache", append(a.options, "pkgnames")...)
	if err != nil {
		return nil, err
	}
	found := regexp.MustCompile(`(?m)^`+pattern+`$`).FindAllString(out, -1)
	if len(found) == 0 {
		return nil, fmt.Errorf("engine: no Debian package matches %s", pattern)
	}
	name := slices.Max(found)
	out, err = a.tool("apt-get", append(a.options, "-s", "--reinstall", "--no-install-recommends", "install", name)...)
	if err != nil {
		return nil, err
	}
	names := []string{name}
	for _, match := range regexp.MustCompile(`(?m)^Inst (lib\S+)`).FindAllStringSubmatch(out, -1) {
		if !strings.HasPrefix(match[1], "libllvm") && !strings.HasSuffix(match[1], "-perl") {
			names = append(names, match[1])
		}
	}
	return names, nil
}

// extract unpacks the downloaded packages atomically.
func (a apt) extract(root string) error {
	packages, err := filepath.Glob(filepath.Join(a.packages(), "*.deb"))
	if err != nil {
		return err
	}
	unfinished := root + ".part"
	if err := os.RemoveAll(unfinished); err != nil {
		return err
	}
	for _, path := range packages {
		if _, err := a.tool("dpkg", "-x", path, unfinished); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(a.dir); err != nil {
		return err
	}
	return os.Rename(unfinished, root)
}

func (a apt) packages() string { return filepath.Join(a.dir, "packages") }

// tool runs a program in the directory of the packages.
func (a apt) tool(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = a.packages()
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive", "HOME="+a.dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	wait, err := startOnThread(cmd)
	if err == nil {
		err = wait()
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", name, err, stderr.Bytes())
	}
	return out.String(), nil
}
