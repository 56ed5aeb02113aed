//go:build unix

package etcdcluster

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// freeze stops a process, and returns when its last thread has stopped.
func freeze(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return err
		case !status.Stopped():
			return fmt.Errorf("process %d has ended", p.Pid)
		default:
			return nil
		}
	}
}

func thaw(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
