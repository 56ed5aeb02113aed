package deploy_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/jackc/pgx/v5"
)

// newDatabase returns the data source name of a database for this test only.
func newDatabase(t *testing.T) string {
	t.Helper()
	dsn, err := url.Parse(postgres.Get(t).DSN())
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("deploy_%d", os.Getpid())
	administer := func(statement string) {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, dsn.String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx)
		if _, err := conn.Exec(ctx, statement); err != nil {
			t.Fatal(err)
		}
	}
	administer("CREATE DATABASE " + name)
	t.Cleanup(func() { administer("DROP DATABASE " + name + " WITH (FORCE)") })
	own := *dsn
	own.Path = "/" + name
	return own.String()
}

// image returns a root directory with nothing but the program and the secret. The secret has
// the owners, modes and links that Kubernetes gives it.
func image(t *testing.T, secret map[string]string, mount string, mode fs.FileMode, group int64) (root string) {
	t.Helper()
	root = t.TempDir()
	text, err := os.ReadFile(program(t))
	if err != nil {
		t.Fatal(err)
	}
	volume := filepath.Join(root, mount)
	version := filepath.Join(volume, "..2026_01_02")
	errs := []error{
		os.Chmod(filepath.Dir(root), 0o755),
		os.WriteFile(filepath.Join(root, "service"), text, 0o755),
		os.MkdirAll(version, 0o755),
		os.Symlink(filepath.Base(version), filepath.Join(volume, "..data")),
	}
	for name, value := range secret {
		file := filepath.Join(version, name)
		errs = append(errs,
			os.WriteFile(file, []byte(value), 0o600),
			os.Chown(file, 0, int(group)),
			os.Chmod(file, mode),
			os.Symlink("..data/"+name, filepath.Join(volume, name)),
		)
	}
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// container returns a container's command. It runs as the pod's user, in the given root
// directory.
func container(t *testing.T, pod corev1.PodSpec, c corev1.Container, root string, replace map[string]string) *exec.Cmd {
	t.Helper()
	var args []string
	for _, arg := range c.Args {
		if value, ok := replace[arg]; ok {
			arg = value
		}
		args = append(args, arg)
	}
	cmd := exec.CommandContext(t.Context(), "/service", args...)
	cmd.Dir = "/"
	cmd.Env = []string{}
	for _, variable := range c.Env {
		cmd.Env = append(cmd.Env, variable.Name+"="+variable.Value)
	}
	s := pod.SecurityContext
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:     root,
		Credential: &syscall.Credential{Uid: uint32(*s.RunAsUser), Gid: uint32(*s.RunAsGroup), Groups: []uint32{uint32(*s.FSGroup)}},
	}
	return cmd
}

// TestPod runs the manifest's containers one after the other. The tables are created, the
// probes respond as they should, even after SIGTERM, and the service ends in time.
func TestPod(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can run a program as the user of a pod")
	}
	m, err := decode(read(t, "kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	pod := m.deployment.Spec.Template.Spec
	init, c := pod.InitContainers[0], pod.Containers[0]
	secret := m.secret.StringData
	secret["store"] = newDatabase(t) + "\n"
	newRoot := func() string {
		return image(t, secret, c.VolumeMounts[0].MountPath, fs.FileMode(*pod.Volumes[0].Secret.DefaultMode), *pod.SecurityContext.FSGroup)
	}
	ports := map[string]string{c.Args[0]: "-listen=127.0.0.1:0", c.Args[1]: "-metrics=127.0.0.1:0"}
	root := newRoot()
	if output, err := container(t, pod, c, root, ports).CombinedOutput(); err == nil || !strings.Contains(string(output), "run the command migrate first") {
		t.Errorf("without its tables: %v\n%s", err, output)
	}
	if output, err := container(t, pod, init, root, nil).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", init.Name, err, output)
	}
	if output, err := container(t, pod, c, root, ports).CombinedOutput(); err == nil || !strings.Contains(string(output), "MASTER, want for instance the output of openssl rand") {
		t.Errorf("with the master of the manifest: %v\n%s", err, output)
	}
	secret["master"] = strings.Repeat("0123456789abcdef", 4) + "\n"
	root = newRoot()
	add := c
	add.Args = []string{"add", "acme"}
	added, err := container(t, pod, add, root, nil).Output()
	if err != nil {
		t.Fatalf("add: %v\n%s", err, added)
	}
	_, password, _ := strings.Cut(strings.TrimSpace(string(added)), ":")
	cmd := container(t, pod, c, root, ports)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var addresses []string
	for lines := bufio.NewScanner(stdout); len(addresses) < 2 && lines.Scan(); {
		addresses = append(addresses, lines.Text())
	}
	if len(addresses) < 2 {
		t.Fatalf("the program ended: %v\n%s", cmd.Wait(), &stderr)
	}
	get := func(address, path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth("acme", password)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, err.Error()
		}
		return resp.StatusCode, string(body)
	}
	const webhooks = "/api/v1/configure/configure-webhook"
	for path, want := range map[string]string{
		c.StartupProbe.HTTPGet.Path:   "ready",
		c.LivenessProbe.HTTPGet.Path:  "alive",
		c.ReadinessProbe.HTTPGet.Path: "ready",
		"/healthz":                    `"credentials":"ok"`,
		webhooks:                      `"overrides":[]`,
	} {
		if status, body := get(addresses[0], path); status != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("GET %s: got %d %s, want %s", path, status, body, want)
		}
	}
	if status, body := get(addresses[1], "/metrics"); status != http.StatusOK || !strings.Contains(body, `webhook_healthy{part="credentials"} 1`) {
		t.Errorf("metrics: got %d %s", status, body)
	}

	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	terminated := time.Now()
	var statuses []int
	for status := http.StatusOK; status == http.StatusOK; statuses = append(statuses, status) {
		status, _ = get(addresses[0], c.ReadinessProbe.HTTPGet.Path)
	}
	if slices.Max(statuses) != http.StatusServiceUnavailable {
		t.Errorf("after SIGTERM, the readiness probe got %v", statuses)
	}
	if status, body := get(addresses[0], webhooks); status != http.StatusOK {
		t.Errorf("unready, a client got %d %s", status, body)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("ended with %v\n%s", err, &stderr)
	}
	if grace := time.Duration(*pod.TerminationGracePeriodSeconds) * time.Second; time.Since(terminated) > grace {
		t.Errorf("Kubernetes would have killed it after %v", grace)
	}
}
