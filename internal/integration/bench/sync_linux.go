package main

import (
	"os"
	"syscall"
)

// syncData makes the content of a file durable, as store.File does.
func syncData(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
