package etcdcluster

import (
	"encoding/json"
	"os"
	"os/exec"
	"runtime"
)

// member is a member and, while it runs, its process.
type member struct {
	description
	launcher *launcher
	process  *exec.Cmd
}

func (m *member) start() error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := json.Marshal(m.description)
	if err != nil {
		return err
	}
	m.process = exec.Command(program)
	m.process.Env = append(os.Environ(), variable+"="+string(text))
	m.process.Stderr = os.Stderr
	endWithParent(m.process)
	if _, err = m.process.StdinPipe(); err != nil {
		return err
	}
	return m.launcher.start(m.process)
}

// kill ends the process without a warning, and waits until it is gone.
func (m *member) kill() {
	if m.process == nil || m.process.Process == nil {
		return
	}
	_ = m.process.Process.Kill() // an error says that it has ended
	_ = m.process.Wait()         // the error says that it was killed
	m.process = nil
}

// Kill ends a member as kill -9 does.
func (c *Cluster) Kill(n int) { c.members[n].kill() }

// Restart starts a member that was killed, with its data and at its address.
func (c *Cluster) Restart(n int) error { return c.members[n].start() }

// Freeze stops a member as kill -STOP does: its connections stay and say nothing.
func (c *Cluster) Freeze(n int) error { return freeze(c.members[n].process.Process) }

// Thaw lets a frozen member go on.
func (c *Cluster) Thaw(n int) error { return thaw(c.members[n].process.Process) }

// launcher starts processes on a thread that lives as long as they may, since
// Linux takes the end of the thread that started a process for that of its parent.
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
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
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
