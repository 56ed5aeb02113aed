//go:build !linux

package store_test

import "os"

func syncData(file *os.File) error { return file.Sync() }
