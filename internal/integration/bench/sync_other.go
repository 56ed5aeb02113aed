//go:build !linux

package main

import "os"

// syncData makes a file's content durable in the same way as store.File.
func syncData(file *os.File) error { return file.Sync() }
