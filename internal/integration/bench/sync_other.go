//go:build !linux

package main

import "os"

// syncData makes the content of a file durable, as store.File does.
func syncData(file *os.File) error { return file.Sync() }
