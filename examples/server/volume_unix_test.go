//go:build unix

package main

import (
	"bufio"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// The user of a pod, and the fsGroup of its volumes.
const (
	podUser = 65532
	fsGroup = 2000
)

// volumes creates the volumes of a pod as Kubernetes mounts them. One is a secret: its files
// are links into a directory that is replaced as a whole. The other is a directory for data.
// If the test runs as root, they also get the owners that they have in a pod.
func volumes(t *testing.T) (credentials, store string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(writeCredentials(t))
	if err != nil {
		t.Fatal(err)
	}
	secret, data := filepath.Join(dir, "secret"), filepath.Join(dir, "data")
	version := filepath.Join(secret, "..2026_01_02")
	for _, err := range []error{
		os.Mkdir(data, 0o755),
		os.MkdirAll(version, 0o755),
		os.WriteFile(filepath.Join(version, "credentials"), text, 0o400),
		os.Symlink("..2026_01_02", filepath.Join(secret, "..data")),
		os.Symlink("..data/credentials", filepath.Join(secret, "credentials")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	own(t, dir)
	return filepath.Join(secret, "credentials"), filepath.Join(data, "webhooks.jsonl")
}

// own sets owners and modes as the kubelet does when it mounts a volume with an fsGroup: the
// group can do as much as the owner, and new files belong to the group.
func own(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.Type()&fs.ModeSymlink != 0 {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if os.Getuid() == 0 {
			if err := os.Chown(path, -1, fsGroup); err != nil {
				return err
			}
		}
		mode := info.Mode().Perm() | 0o060
		switch {
		case entry.IsDir():
			mode = 0o775 | fs.ModeSetgid
		case strings.Contains(path, "secret"):
			mode = 0o440
		}
		return os.Chmod(path, mode)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestVolumes runs the program with the volumes of a pod, twice, and as the user of a pod if
// this process may: with -shared it starts and keeps its data, and without it says why not.
func TestVolumes(t *testing.T) {
	if args := os.Getenv("SERVER_TEST_VOLUMES"); args != "" {
		if os.Getuid() == 0 {
			for _, err := range []error{syscall.Setgroups([]int{fsGroup}), syscall.Setgid(podUser), syscall.Setuid(podUser)} {
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
		defer stop()
		if err := run(ctx, strings.Split(args, " "), os.Stdout, os.Stderr); err != nil {
			t.Fatal(err)
		}
		return
	}
	credentials, store := volumes(t)
	args := []string{"-listen", "127.0.0.1:0", "-probe", "off", "-credentials", credentials, "-store", "file:" + store}
	child := func(args []string) *exec.Cmd {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestVolumes$")
		c.Env = append(os.Environ(), "SERVER_TEST_VOLUMES="+strings.Join(args, " "))
		return c
	}
	if text, err := child(args).Output(); err == nil || !strings.Contains(string(text), "chmod go-w") && !strings.Contains(string(text), "chmod 600") {
		t.Errorf("without -shared: %v: %s", err, text)
	}
	args = append(args, "-shared")
	for i, body := range []string{`{"webhook_url":"https://example.com/all"}`, `{"endpoint_id":"e1","webhook_url":"https://example.com/e1"}`} {
		c := child(args)
		stdout, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(stdout).ReadString('\n')
		if err != nil {
			t.Fatalf("start %d: %v", i, err)
		}
		s := started{address: strings.TrimSpace(line)}
		if !strings.HasPrefix(s.address, "127.0.0.1:") {
			t.Fatalf("start %d: %s", i, line)
		}
		for _, step := range []struct{ method, target, body, want string }{
			{"GET", "/healthz", "", `200 {"credentials":"ok","store":"ok"}`},
			{"POST", path, body, "200 "},
			{"GET", path + "/e2", "", `"https://example.com/all","source":"base"`},
		} {
			if got := s.call(t, step.method, step.target, "acme:s3cret", step.body); !strings.Contains(got, step.want) {
				t.Errorf("start %d: %s %s: got %s, want %s", i, step.method, step.target, got, step.want)
			}
		}
		if err := c.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := c.Wait(); err != nil {
			t.Errorf("start %d: ended with %v", i, err)
		}
		own(t, filepath.Dir(filepath.Dir(store)))
	}
}
