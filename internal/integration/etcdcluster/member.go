package etcdcluster

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"go.etcd.io/etcd/server/v3/embed"
)

// memberEnv is the environment variable with the memberConfig of a member process.
const memberEnv = "WEBHOOKCFG_ETCD_MEMBER"

// memberConfig configures a member.
type memberConfig struct {
	Name, Dir    string
	Client, Peer string // "http://host:port"
	Cluster      string // all members, "name=peer,…"
	Options
}

// RunMember never returns in a process that [Start] started as a member: it runs the member.
// In any other process it returns at once.
func RunMember() {
	text, ok := os.LookupEnv(memberEnv)
	if !ok {
		return
	}
	if err := run(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// run runs a member until its standard input ends, which happens when the parent ends.
func run(text string) error {
	var d memberConfig
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		return err
	}
	config, err := d.config()
	if err != nil {
		return err
	}
	server, err := embed.StartEtcd(config)
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return <-server.Err()
}

func (d memberConfig) config() (*embed.Config, error) {
	client, err := url.Parse(d.Client)
	if err != nil {
		return nil, err
	}
	peer, err := url.Parse(d.Peer)
	if err != nil {
		return nil, err
	}
	c := embed.NewConfig()
	c.Name, c.Dir, c.InitialCluster = d.Name, filepath.Join(d.Dir, "data"), d.Cluster
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	c.LogLevel, c.LogOutputs = "warn", []string{filepath.Join(d.Dir, "log")}
	c.EnableGRPCGateway, c.QuotaBackendBytes, c.UnsafeNoFsync = false, d.Quota, !d.Sync
	if d.Election > 0 {
		c.ElectionMs = uint(d.Election.Milliseconds())
	}
	return c, nil
}

// member is a member of the cluster, with its process while it runs.
type member struct {
	memberConfig
	launcher *launcher
	process  *exec.Cmd
}

func (m *member) start() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(m.memberConfig)
	if err != nil {
		return err
	}
	m.process = exec.Command(program)
	m.process.Env = append(os.Environ(), memberEnv+"="+string(text))
	m.process.Stderr = os.Stderr
	endWithParent(m.process)
	if _, err = m.process.StdinPipe(); err != nil {
		return err
	}
	return m.launcher.start(m.process)
}

// kill kills the process and waits for its end.
func (m *member) kill() {
	if m.process == nil || m.process.Process == nil {
		return
	}
	_ = m.process.Process.Kill() // fails if it has ended
	_ = m.process.Wait()         // fails because it was killed
	m.process = nil
}

// Kill kills a member with SIGKILL.
func (c *Cluster) Kill(n int) { c.members[n].kill() }

// Restart starts a killed member again, with the same data and address.
func (c *Cluster) Restart(n int) error { return c.members[n].start() }

// Freeze stops a member with SIGSTOP. Its connections stay open, but silent.
func (c *Cluster) Freeze(n int) error { return freeze(c.members[n].process.Process) }

// Thaw lets a frozen member go on.
func (c *Cluster) Thaw(n int) error { return thaw(c.members[n].process.Process) }

// launcher starts processes on a thread that outlives them. When the thread that started a
// process ends, Linux acts as if its parent had died.
type launcher struct {
	commands chan *exec.Cmd
	errors   chan error
	done     chan struct{}
}

func newLauncher() *launcher {
	l := &launcher{commands: make(chan *exec.Cmd), errors: make(chan error), done: make(chan struct{})}
	go l.run()
	return l
}

func (l *launcher) run() {
	defer close(l.done)
	runtime.LockOSThread() // never unlocked, so the thread ends with the goroutine
	for command := range l.commands {
		l.errors <- command.Start()
	}
}

func (l *launcher) start(command *exec.Cmd) error {
	l.commands <- command
	return <-l.errors
}

func (l *launcher) close() {
	close(l.commands)
	<-l.done
}
