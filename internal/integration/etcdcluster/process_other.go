//go:build !linux

package etcdcluster

import "os/exec"

// endWithParent has nothing to add to the end of the standard input.
func endWithParent(*exec.Cmd) {}

func loopback() string { return "127.0.0.1" }
