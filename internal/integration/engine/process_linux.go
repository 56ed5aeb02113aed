package engine

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// nobodyUID is the servers' account if the tests run as root. Servers refuse to run as root.
const nobodyUID = 65534

// process is a daemon and its child processes.
type process struct {
	pid    int
	tail   tail
	killed bool
	ready  chan struct{}
	exited chan struct{} // closed when the last process has closed its output
}

// command returns a command that runs without privileges and dies with the tests.
func command(ctx context.Context, p program, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Dir = "/"
	cmd.Env = append([]string{"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", "TZ=GMT0"}, p.env...)
	// In the group of the tests, the kernel would continue a frozen server when the shell that
	// started the tests exits.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if os.Getuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobodyUID, Gid: nobodyUID}
	}
	return cmd
}

// startOnThread starts a command, and waits for it on a goroutine that keeps its thread. The
// kernel sends Pdeathsig when the thread ends, not the process.
func startOnThread(cmd *exec.Cmd) (wait func() error, err error) {
	started, done := make(chan error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			done <- cmd.Wait()
		}
	}()
	return func() error { return <-done }, <-started
}

// run runs a program to completion.
func run(ctx context.Context, p program, path string, input io.Reader, args ...string) error {
	cmd := command(ctx, p, path, args...)
	var output bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = input, &output, &output
	wait, err := startOnThread(cmd)
	if err == nil {
		err = wait()
	}
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(path), err, output.Bytes())
	}
	return nil
}

// launch starts a daemon and waits until it logs that it's ready.
func launch(p program, args []string, ready string) (*process, error) {
	d, err := spawn(p, args, ready)
	if err != nil {
		return nil, err
	}
	return d, d.await(d.ready)
}

// launchListening starts a daemon and waits until it accepts connections.
func launchListening(p program, args []string, addr string) (*process, error) {
	d, err := spawn(p, args, "")
	if err != nil {
		return nil, err
	}
	accepts, stop := make(chan struct{}), make(chan struct{})
	defer close(stop)
	go func() {
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			if conn, err := net.Dial("tcp", addr); err == nil {
				_ = conn.Close()
				close(accepts)
				return
			}
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	}()
	return d, d.await(accepts)
}

func spawn(p program, args []string, ready string) (*process, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	if os.Getuid() == 0 { // some daemons open /dev/stderr, and only its owner can
		if err := w.Chown(nobodyUID, nobodyUID); err != nil {
			return nil, errors.Join(err, r.Close(), w.Close())
		}
	}
	cmd := command(context.Background(), p, p.path, args...)
	cmd.Stdout, cmd.Stderr = w, w
	wait, err := startOnThread(cmd)
	_ = w.Close()
	if err != nil {
		_ = r.Close()
		return nil, err
	}
	d := &process{pid: cmd.Process.Pid, ready: make(chan struct{}), exited: make(chan struct{})}
	go func() {
		defer close(d.exited)
		defer r.Close()
		d.read(r, ready)
		_ = wait()
	}()
	return d, nil
}

func (d *process) read(r io.Reader, ready string) {
	seen := false
	for lines := bufio.NewScanner(r); lines.Scan(); {
		d.tail.add(lines.Text())
		if !seen && strings.Contains(lines.Text(), ready) {
			seen = true
			close(d.ready)
		}
	}
}

func (d *process) await(ready <-chan struct{}) error {
	select {
	case <-ready:
		return nil
	case <-d.exited:
		return fmt.Errorf("engine: server exited:\n%s", d.tail.String())
	case <-time.After(startTimeout):
		return errors.Join(fmt.Errorf("engine: server not ready after %v:\n%s", startTimeout, d.tail.String()), d.kill())
	}
}

// kill first stops the daemon, so that it can't start more processes. It returns when all
// have exited. It fails if the daemon exited by itself.
func (d *process) kill() error {
	if d.killed {
		return nil
	}
	d.killed = true
	select {
	case <-d.exited:
		return fmt.Errorf("engine: server exited:\n%s", d.tail.String())
	default:
	}
	if err := errors.Join(d.freeze(), d.signal(syscall.SIGKILL)); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	select {
	case <-d.exited:
		return nil
	case <-time.After(startTimeout):
		return fmt.Errorf("engine: server still running %v after SIGKILL", startTimeout)
	}
}

func (d *process) freeze() error {
	if err := syscall.Kill(d.pid, syscall.SIGSTOP); err != nil {
		return err
	}
	return d.signal(syscall.SIGSTOP)
}

func (d *process) thaw() error { return d.signal(syscall.SIGCONT) }

// signal sends a signal to the children first, then to the daemon.
func (d *process) signal(sig syscall.Signal) error {
	children, err := d.children()
	if err != nil {
		return err
	}
	for _, pid := range children {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return syscall.Kill(d.pid, sig)
}

// children returns the child processes of the daemon.
func (d *process) children() (pids []int, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		stat, err := os.ReadFile(file)
		if err != nil {
			continue // it has exited
		}
		// The name is in parentheses and can contain anything. Then come the state and the
		// parent.
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) > 1 && fields[1] == strconv.Itoa(d.pid) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil {
				return nil, err
			}
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// tail holds the last lines of a daemon's log.
type tail struct {
	mu    sync.Mutex
	lines []string
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, line)
	t.lines = t.lines[max(0, len(t.lines)-30):]
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.lines, "\n")
}

// privateDir creates a directory that only the servers' account can enter.
func privateDir() (string, error) {
	dir, err := os.MkdirTemp("", "webhookcfg-engine-")
	if err != nil {
		return "", err
	}
	return dir, chownToServer(dir)
}

// chownToServer makes the servers' account the owner of path.
func chownToServer(path string) error {
	if os.Getuid() != 0 {
		return nil
	}
	return os.Chown(path, nobodyUID, nobodyUID)
}
