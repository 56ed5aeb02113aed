package etcdcluster

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"syscall"
)

func endWithParent(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// loopback returns one of the many addresses of the machine itself, on which
// nobody else takes a port between the choice and its use.
func loopback() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}
