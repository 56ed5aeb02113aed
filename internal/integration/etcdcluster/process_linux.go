package etcdcluster

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"syscall"
)

func endWithParent(command *exec.Cmd) {
	// In the group of the tests, the kernel would continue a frozen member when the shell
	// that started the tests exits.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}

// loopback returns a random address of 127.0.0.0/8. No other process takes a port there
// before we use it.
func loopback() string {
	return fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
}
