package main

import (
	"os"
	"syscall"
)

// syncData makes a file's content durable in the same way as store.File.
func syncData(file *os.File) error { return syscall.Fdatasync(int(file.Fd())) }
